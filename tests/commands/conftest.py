"""What the tests of several commands begin with."""

import inspect
import json
from pathlib import Path

import pytest

from tests.commands.test_plan import PLAN, call
from tests.support import commit, write

_OF_FILES = {"workspace", "store"}
"""What a test asks for that looks at the files of the workspace."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test over both stores whose fixtures leave it open where guard keeps its records."""
    own = inspect.signature(metafunc.function).parameters.keys()
    markers = {marker.name for marker in metafunc.definition.iter_markers()}
    if "kept_in" in metafunc.fixturenames and not own & _OF_FILES and "files" not in markers:
        metafunc.parametrize("kept_in", ["files", "postgres"], indirect=True)


@pytest.fixture
def planned_project(repository: Path) -> Path:
    """A repository whose plan is loaded."""
    commit(repository, "first.txt")
    write(repository / "plan.json", json.dumps(PLAN))
    assert call("plan", "load", "plan.json")[0] == 0
    return repository
