"""Limit how long a hook takes: then guard's work is interrupted, and the programs that it started are ended.

If even that takes too long, the process exits and prints nothing: to every agent CLI that means to go on.
"""

import os
import signal
import threading
from time import monotonic
from types import FrameType, TracebackType

_MORE_SECONDS = 8.0
"""To end what was started; a program that hangs in the kernel is waited for up to 5 s."""


class TimeIsUp(BaseException):
    """The time limit of a hook is over. A BaseException: no handler of errors on the way may catch it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"guard took longer than {seconds:g} s")


class Watchdog:
    """Raises TimeIsUp in its `with` block when the limit is over; in the main thread only: no other can be interrupted."""

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
        # Counted from the watchdog's beginning, not from now.
        self._seconds = seconds
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, self.seconds_left()))

    def seconds_left(self) -> float:
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
        # The timer of the caller goes on.
        if seconds:
            left = seconds - (monotonic() - self._begun)
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left), interval)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)
