"""A log moved to another store and back: the same bytes, all of it or nothing."""

import os
from pathlib import Path

import pytest

from guard.core.agents.registry import AGENT_REGISTRY
from guard.errors import GuardError, Refused, StateProblem
from guard.store.file_store import FileStore
from guard.store.import_log import UNFINISHED
from tests.support import commit, run
from tests.support.events import run_started, spawned, updated


def fill(path: Path, records: int = 60) -> FileStore:
    """A log of several segments, with a change of several events in it."""
    store = FileStore(path, segment_max_bytes=4096)
    for number in range(records):
        with store.change() as change:
            change.append(spawned(task=f"T{number % 3}"), updated(task=f"T{number % 3}"))
    with store.change() as change:
        change.append(run_started())
    return store


def files(path: Path) -> dict[str, bytes]:
    """Every file of the workspace but the locks."""
    return {
        str(found.relative_to(path)): found.read_bytes()
        for found in sorted(path.rglob("*"))
        if found.is_file() and not found.name.startswith("workspace.")
    }


def test_a_log_goes_to_another_folder_without_a_difference(tmp_path: Path) -> None:
    store, other = fill(tmp_path / "a"), FileStore(tmp_path / "b")
    lines = [record.line for record in store.records()]
    assert (
        b"".join(b"%s\n" % line for line in lines)
        == b"".join(
            (tmp_path / "a" / name).read_bytes()
            for name in sorted(files(tmp_path / "a"))
            if name.startswith("events.0")
        )
        + (tmp_path / "a" / "events.jsonl").read_bytes()
    )
    assert other.import_lines(lines) == len(lines)
    store.rebuild()
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert other.verify().ok


def test_what_was_imported_goes_on(tmp_path: Path) -> None:
    lines = [record.line for record in fill(tmp_path / "a").records()]
    other = FileStore(tmp_path / "b")
    other.import_lines(lines)
    with other.change() as change:
        change.append(spawned(task="T9"))
    assert FileStore(tmp_path / "b").view(AGENT_REGISTRY, "T9") is not None
    assert other.verify().ok


def test_a_torn_tail_is_not_exported(tmp_path: Path) -> None:
    store = fill(tmp_path / "a", 2)
    lines = [record.line for record in store.records()]
    with (tmp_path / "a" / "events.jsonl").open("ab") as log:
        log.write(b'{"v":1,"seq":')
    assert [record.line for record in FileStore(tmp_path / "a").records()] == lines


def broken(lines: list[bytes]) -> dict[str, list[bytes]]:
    return {
        "a line is missing": lines[:3] + lines[4:],
        "the first line is missing": lines[1:],
        "two lines changed places": [lines[0], lines[2], lines[1], *lines[3:]],
        "a bit was flipped": [*lines[:2], lines[2].replace(b"T", b"U", 1), *lines[3:]],
        "the last change is torn": lines[:2],
        "a line is empty": [*lines[:2], b"", *lines[2:]],
        "a line is twice there": [*lines[:2], lines[1], *lines[2:]],
        "no log at all": [b"hello"],
    }


@pytest.mark.parametrize("case", broken([b""] * 8))
def test_a_damaged_log_is_refused_and_nothing_is_imported(case: str, tmp_path: Path) -> None:
    lines = [record.line for record in fill(tmp_path / "a", 4).records()]
    other = FileStore(tmp_path / "b")
    with pytest.raises(StateProblem):
        other.import_lines(broken(lines)[case])
    assert list(other.entries()) == []
    assert [name for name in files(tmp_path / "b") if "event" in name or "import" in name] == []
    assert other.import_lines(lines) == len(lines)


def test_nothing_is_imported_over_a_history(tmp_path: Path) -> None:
    lines = [record.line for record in fill(tmp_path / "a", 2).records()]
    other = fill(tmp_path / "b", 1)
    before = files(tmp_path / "b")
    with pytest.raises(Refused):
        other.import_lines(lines)
    assert files(tmp_path / "b") == before


@pytest.mark.parametrize("placed", [1, 2])
def test_a_killed_import_is_no_log_and_is_made_again(placed: int, tmp_path: Path) -> None:
    store = fill(tmp_path / "a")
    lines = [record.line for record in store.records()]
    other = FileStore(tmp_path / "b")

    class Killed(BaseException):
        pass

    real, calls = os.rename, []

    def rename(*words: object, **folders: object) -> None:
        calls.append(words)
        if len(calls) > placed + 1:  # The first one puts the mark of the import in its place.
            raise Killed
        real(*words, **folders)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", rename)
        with pytest.raises(Killed):
            other.import_lines(lines)
    assert (tmp_path / "b" / UNFINISHED).exists()
    with pytest.raises(GuardError):
        list(FileStore(tmp_path / "b").entries())
    assert FileStore(tmp_path / "b").import_lines(lines) == len(lines)
    store.rebuild()
    assert files(tmp_path / "b") == files(tmp_path / "a")


def test_the_command_moves_a_log_by_file_and_by_pipe(repository: Path, tmp_path: Path) -> None:
    commit(repository)
    assert run("breaker", "trip", "--reason", "é \x27 \\").code == 0
    file = tmp_path / "log.jsonl"
    done = run("log", "--export", file)
    assert (done.code, done.err) == (0, "")
    assert file.stat().st_mode & 0o777 == 0o600
    piped = run("log", "--export", "-")
    assert piped.out.encode() == file.read_bytes()
    again = run("log", "--export", file)
    assert (again.code, file.read_bytes()) == (1, piped.out.encode())
    other = ("--workspace", str(tmp_path / "other"))
    assert run(*other, "log", "--import", file).code == 0
    assert run(*other, "log", "--export", "-").out == piped.out
    assert run(*other, "verify").code == 0
    assert run(*other, "log", "--import", file).code == 1
    third = ("--workspace", str(tmp_path / "third"))
    assert run(*third, "log", "--import", "-", stdin=piped.out).code == 0
    assert run(*third, "log", "--export", "-").out == piped.out


@pytest.mark.parametrize(
    "words",
    [
        ("--export", "x", "--import", "y"),
        ("--export", "-", "--type", "run_started"),
        ("--export", "-", "-n", "1"),
        ("--import", "-", "--follow"),
    ],
)
def test_a_part_of_a_log_cannot_be_moved(words: tuple[str, ...], repository: Path) -> None:
    assert run("log", *words).code == 2


def test_a_file_that_is_not_there_is_wrong_usage(repository: Path, tmp_path: Path) -> None:
    assert run("log", "--import", tmp_path / "nothing").code == 2
    assert run("log", "--export", tmp_path / "no" / "folder").code == 2
