"""One time limit shared by everything that a snapshot or a rescue does."""

import time


class Deadline:
    """A moment on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until then; a little more than nothing when it has passed, so that a call fails by its own time limit."""
        return max(0.01, self._end - time.monotonic())

    def passed(self) -> bool:
        return time.monotonic() >= self._end

    def part(self, share: float) -> "Deadline":
        """An earlier moment, so that something can still be done after it."""
        return Deadline(self.left() * share)
