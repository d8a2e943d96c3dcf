"""Parts of a change: how it is cut, what each leaves when it is taken back, and what counts as noticed."""

import subprocess
from pathlib import Path

import pytest

from guard.core.prove.hunks import hunks_of, notice
from guard.core.prove.outcome import CellRun, State, TestOutcome


def cut(
    folder: Path, base: bytes, head: bytes, path: str = "calc.py"
) -> list[tuple[int, bytes, bytes]]:
    """Cut as git does, and see that each part taken back, from the last on, gives the baseline's file."""
    old, new = folder / "old", folder / "new"
    old.write_bytes(base)
    new.write_bytes(head)
    words = ["git", "diff", "--no-index", "-U0", "--text", str(old), str(new)]
    patch = subprocess.run(words, capture_output=True, check=False).stdout
    found = hunks_of(path, base, head, patch)
    return [(hunk.start, b"".join(hunk.new), hunk.take_back(head)) for hunk in found]


CHANGES = {
    "changed": (b"a\nb\nc\n", b"a\nB\nc\n", [(1, b"B\n", b"a\nb\nc\n")]),
    "removed": (b"a\nb\nc\n", b"a\nc\n", [(1, b"", b"a\nb\nc\n")]),
    "added": (b"a\nc\n", b"a\nb\nc\n", [(1, b"b\n", b"a\nc\n")]),
    "added without an end": (b"a\n", b"a\nb", [(1, b"b", b"a\n")]),
    "an end added": (b"a", b"a\nb\n", [(0, b"a\nb\n", b"a")]),
    "carriage returns": (b"a\r\nb\r\n", b"a\r\nc\r\n", [(1, b"c\r\n", b"a\r\nb\r\n")]),
    "a lone carriage return": (b"a\rb\nc\n", b"a\rb\nd\n", [(1, b"d\n", b"a\rb\nc\n")]),
    "two": (
        b"1\n2\n3\n4\n5\n",
        b"0\n2\n3\n4\n6\n",
        [(0, b"0\n", b"1\n2\n3\n4\n6\n"), (4, b"6\n", b"0\n2\n3\n4\n5\n")],
    ),
    "to an empty file": (b"", b"x\n", [(0, b"x\n", b"")]),
}


@pytest.mark.parametrize(("base", "head", "parts"), CHANGES.values(), ids=CHANGES)
def test_a_part_taken_back_leaves_what_was_there(
    tmp_path: Path, base: bytes, head: bytes, parts: list[tuple[int, bytes, bytes]]
) -> None:
    assert cut(tmp_path, base, head) == parts


def test_added_lines_are_cut_where_a_function_or_a_method_begins(tmp_path: Path) -> None:
    added = b"def one():\n    x = 1\n\n    return x\n\n\n@mark\ndef two():\n    return 2\n"
    assert [part for _, part, _ in cut(tmp_path, b"a\n", b"a\n" + added)] == [
        b"def one():\n    x = 1\n\n    return x\n",
        b"@mark\ndef two():\n    return 2\n",
    ]
    inside = b"    def one(self):\n        pass\n\n    def two(self):\n        pass\n"
    found = cut(tmp_path, b"class A:\n    x = 1\n", b"class A:\n    x = 1\n" + inside)
    assert [part.split(b"(")[0].strip() for _, part, _ in found] == [b"def one", b"def two"]


@pytest.mark.parametrize(
    ("path", "text", "is_counted"),
    [
        ("a.py", b"# why\n\n", False),
        ("a.py", b"x = 1  # why\n", True),
        ("a.js", b"// why\n/* and */\n", False),
        ("a.js", b"#private = 1\n", True),
        ("a.c", b"#include <a.h>\n", True),
        ("a.py", b"\n \n", False),
    ],
)
def test_blank_lines_and_comments_are_not_counted(path: str, text: bytes, is_counted: bool) -> None:
    assert bool(hunks_of(path, None, text, b"")) is is_counted


def test_a_new_file_is_cut_and_a_removed_one_is_whole() -> None:
    assert len(hunks_of("a.py", None, b"x = 1\n\ny = 2\n", b"")) == 2
    (hunk,) = hunks_of("a.py", b"x = 1\n\ny = 2\n", None, b"")
    assert hunk.take_back(b"") == b"x = 1\n\ny = 2\n"


def ended_with(**states: State) -> CellRun:
    found = {name: TestOutcome(name, "t.py", state) for name, state in states.items()}
    return CellRun("exited", int("failed" in states.values()), 1.0, "tests", found)


GREEN = ended_with(a="passed", b="passed")
RUNS: dict[str, tuple[CellRun, object]] = {
    "green": (GREEN, None),
    "a test fails": (ended_with(a="passed", b="failed"), ("failing_test", ("b",))),
    "a test is gone": (ended_with(a="passed"), None),
    "hangs": (CellRun("timeout", None, 9.0), ("hang", ())),
    "not loaded": (
        CellRun("exited", 2, 1.0, "tests", uncollected=("t.py",)),
        ("no_start", ("t.py",)),
    ),
    "no test is run": (CellRun("exited", 5, 1.0, "tests"), ("no_start", ())),
    "exit code": (CellRun("exited", 1, 1.0), ("exit_code", ())),
    "exit code beside green tests": (
        CellRun("exited", 3, 1.0, "tests", GREEN.tests),
        ("exit_code", ()),
    ),
}


@pytest.mark.parametrize(("without", "noticed"), RUNS.values(), ids=RUNS)
def test_what_is_noticed(without: CellRun, noticed: object) -> None:
    assert notice(GREEN, without) == noticed
