"""Registry files from outside: what is read, and what is refused in one sentence."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guard.agents import import_registry
from guard.errors import GuardError, StateProblem, WrongUsage
from tests.support import write


def test_a_document_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "AGENT_REGISTRY.json", '{"task_id": "T1", "agents": []}\n')
    assert import_registry.read_document(path) == {"task_id": "T1", "agents": []}


def a_link(path: Path) -> None:
    path.symlink_to(write(path.with_name("target"), "{}"))


def a_large_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(import_registry.MOST_BYTES + 1)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        pytest.param(lambda _: None, WrongUsage, "No such file", id="missing"),
        pytest.param(a_link, WrongUsage, "symbolic link", id="link"),
        pytest.param(Path.mkdir, WrongUsage, "not a regular file", id="folder"),
        pytest.param(os.mkfifo, WrongUsage, "not a regular file", id="pipe"),
        pytest.param(a_large_file, WrongUsage, "more than 67108864 bytes", id="too-large"),
        pytest.param(lambda p: write(p, "{"), StateProblem, "not JSON", id="cut-off"),
        pytest.param(lambda p: write(p, ""), StateProblem, "not JSON", id="empty"),
        pytest.param(lambda p: write(p, b"\xff"), StateProblem, "not JSON", id="no-text"),
        pytest.param(
            lambda p: write(p, '{"a":1,"a":2}'), StateProblem, "stands twice", id="key-twice"
        ),
        pytest.param(lambda p: write(p, "[" * 9999), StateProblem, "deep", id="deep"),
        pytest.param(lambda p: write(p, '"\\ud800"'), StateProblem, "surrogate", id="surrogate"),
        pytest.param(lambda p: write(p, "9" * 9999), StateProblem, "not JSON", id="long-number"),
    ],
)
def test_what_cannot_be_read(
    tmp_path: Path, make: Callable[[Path], Any], kind: type[GuardError], words: str
) -> None:
    path = tmp_path / "registry.json"
    make(path)
    with pytest.raises(kind) as told:
        import_registry.read_document(path)
    assert words in told.value.message
    assert "\n" not in told.value.message
    assert str(path) in told.value.message
    assert told.value.hint


def test_names_are_harmless_in_messages(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage) as told:
        import_registry.read_document(tmp_path / "a\x1b[31m")
    assert "\x1b" not in told.value.message
    with pytest.raises(WrongUsage):
        import_registry.read_document(Path("a\0b"))
