"""What the tests of several commands begin with."""

import json
from pathlib import Path

import pytest

from tests.commands.test_plan import PLAN, call
from tests.support import commit, write


@pytest.fixture
def planned_project(repository: Path) -> Path:
    """A repository whose plan is loaded."""
    commit(repository, "first.txt")
    write(repository / "plan.json", json.dumps(PLAN))
    assert call("plan", "load", "plan.json")[0] == 0
    return repository
