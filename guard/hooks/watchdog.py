"""A limit to how long a hook takes: when it is over, what is under way is interrupted, and its programs are ended.

Should even that take too long, the process leaves with nothing said: to every agent's program that means to go on.
"""

import os
import signal
import threading
from time import monotonic
from types import FrameType, TracebackType

_MORE_SECONDS = 8.0
"""To end what was started; a program that hangs in the kernel is waited for up to 5 s."""


class TimeIsUp(BaseException):
    """Nothing that handles errors on the way may take it for one of its own."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"guard took longer than {seconds:g} s")


class Watchdog:
    """Inside, the time runs: in the main thread only, because no other one can be interrupted."""

    def __init__(self, seconds: float) -> None:
        self._begun = monotonic()
        self._seconds = seconds
        self._works = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> "Watchdog":
        if self._works:
            self._handler = signal.signal(signal.SIGALRM, self._interrupt)
            self._timer = signal.setitimer(signal.ITIMER_REAL, self._seconds)
        return self

    def set_limit(self, seconds: float) -> None:
        """The limit from the beginning on, once it is known."""
        self._seconds = seconds
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, self.seconds_left()))

    def seconds_left(self) -> float:
        """How many seconds are left."""
        return self._begun + self._seconds - monotonic()

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGALRM, _leave)
        signal.setitimer(signal.ITIMER_REAL, _MORE_SECONDS)
        raise TimeIsUp(self._seconds)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._handler)
            self._restore(*self._timer)

    def _restore(self, seconds: float, interval: float) -> None:
        """Whoever had set the timer gets it back."""
        if seconds:
            left = seconds - (monotonic() - self._begun)
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left), interval)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)
