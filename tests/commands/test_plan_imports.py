"""The events and the view of a plan are loaded when they are met: by every command, in a process that knows nothing yet."""

import json
from pathlib import Path

import pytest

from tests.support import run, write

PLAN = {
    "tasks": [{"id": "A", "title": "Write it"}, {"id": "B", "title": "Try it", "depends": ["A"]}]
}
MEETING = {
    "log": ("log", "--type", "developer_dispatched"),
    "verify": ("verify",),
    "rebuild": ("rebuild",),
    "status": ("status",),
    "agent list": ("agent", "list"),
    "baseline": ("baseline",),
    "metrics": ("metrics",),
    "plan next": ("plan", "next"),
}
LOADED = """
import sys
from guard.cli import main
try:
    main()
finally:
    loaded = {name for name in sys.modules if name.startswith("guard.core.coordinator.")}
    print(len(loaded - {"guard.core.coordinator.settings"}), file=sys.stderr)
"""


@pytest.fixture
def planned(repository: Path) -> Path:
    write(repository / "plan.json", json.dumps(PLAN))
    assert run("plan", "load", "plan.json", cwd=repository).code == 0
    assert run("plan", "dispatch", "A", "--agent", "dev-1", cwd=repository).code == 0
    return repository


@pytest.mark.parametrize("words", MEETING.values(), ids=MEETING)
def test_a_command_reads_a_log_that_has_a_plan_in_it(planned: Path, words: tuple[str, ...]) -> None:
    done = run(*words, cwd=planned, fresh=True)
    assert done.code == 0, done.err


def test_what_was_lost_is_made_again(planned: Path) -> None:
    state = Path(run("where", cwd=planned).out.strip()) / "state.json"
    before = state.read_bytes()
    state.unlink()
    assert run("rebuild", cwd=planned, fresh=True).code == 0
    assert state.read_bytes() == before


def test_a_command_that_meets_no_plan_loads_none(repository: Path) -> None:
    done = run("agent", "list", cwd=repository, fresh=True, script=LOADED)
    assert (done.code, done.err.splitlines()[-1:]) == (0, ["0"])
