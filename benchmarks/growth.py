"""One registry update in a small history and in a long one."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from benchmarks.history import MOMENT, finished
from benchmarks.measure import Row, at_most, paired, scratch
from guard.agents import registry
from guard.store.file_store import FileStore

_ROUNDS = 60


def rows() -> Iterator[Row]:
    with scratch() as folder:
        finished(folder / "small", 100, 2)
        finished(folder / "large", 10_000, 200)
        small, large = paired(
            _ROUNDS, _update(folder / "small", 100), _update(folder / "large", 10_000)
        )
    detail = f"{large * 1e3:.2f} ms with 10,000 in 200 tasks, {small * 1e3:.2f} ms with 100 in 2"
    yield at_most(
        "one registry update, 10,000 finished agents beside 100", 2, large / small, detail
    )


def _update(workspace: Path, finished_agents: int) -> Callable[[], object]:
    """A store that has read nothing yet, as in a process that has just begun."""
    steps = count()

    def update() -> object:
        return registry.update(
            FileStore(workspace),
            MOMENT,
            registry.AgentUpdate(
                "task-0", f"agent-{finished_agents}", "working", message=f"step {next(steps)}"
            ),
        )

    return update
