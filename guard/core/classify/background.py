"""Work that a session started and did not wait for: what is still open, and what was killed with the session."""

_MOST = 1000
_ENDED = ("completed", "failed", "errored", "done")
_KILLED = ("killed", "stopped", "cancelled", "canceled")


class Background:
    """Tasks by id; those that were killed count only if the session said nothing afterwards.

    A task that the agent stopped itself is killed too, but then the agent goes on and knows of it.
    """

    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        self._killed: dict[str, str] = {}
        self._listed: set[str] = set()

    def started(self, task: object, description: object) -> None:
        """A task runs in the background from now on."""
        if not isinstance(task, str) or not 0 < len(task) <= 200:
            return
        if task in self._open or len(self._open) < _MOST:
            self._open[task] = str(description or self._open.get(task) or task)[:500]

    def changed(self, task: object, status: object) -> None:
        """A task got a new status; only ends are of interest."""
        if not isinstance(task, str) or not isinstance(status, str):
            return
        if status in _KILLED and task in self._open and len(self._killed) < _MOST:
            self._killed[task] = self._open.pop(task)
        elif status in _ENDED:
            self._open.pop(task, None)
            self._killed.pop(task, None)

    def listed(self, tasks: dict[str, str]) -> None:
        """All tasks that run now: what was in an earlier list and is not in this one has ended."""
        for task in self._listed - tasks.keys():
            self._open.pop(task, None)
        for task, description in tasks.items():
            self.started(task, description)
        self._listed = set(list(tasks)[:_MOST])

    def spoke(self) -> None:
        """The agent went on, and so knows what was killed before."""
        self._killed.clear()

    def left(self) -> tuple[str, ...]:
        """What was killed, or was still open at the end."""
        return (*self._killed.values(), *self._open.values())
