"""Boxes that are ticked by evidence: the files that a task names are committed, all of them."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.base.taskfile import boxes
from guard.core.rescue.tick_boxes import tick_boxes
from tests.support.cost import cpu_limit

COMMITTED = (
    "src/parser/dates.py",
    "tests/parser/test_dates.py",
    "web/src/api/client.ts",
    "crates/store/src/lib.rs",
    "crates/cli/src/lib.rs",
    "docs/dates.md",
    "Dockerfile",
    ".gitignore",
    "bin/migrate",
)

TICKED = {
    "a quoted path": "Parse dates in `src/parser/dates.py`",
    "a bare path": "Parse dates in src/parser/dates.py.",
    "a path in brackets": "Parse dates (src/parser/dates.py)",
    "a path in bold": "**src/parser/dates.py**: parse dates",
    "a path at the beginning": "src/parser/dates.py",
    "a path from here": "Parse dates in ./src/parser/dates.py",
    "a line of a file": "Mend src/parser/dates.py:42",
    "a test of a file": "Mend `tests/parser/test_dates.py::test_leap_year`",
    "several": "Parse (`src/parser/dates.py`), test (tests/parser/test_dates.py), docs/dates.md",
    "a name that one path has": "Write dates.md",
    "an end that one path has": "Write `store/src/lib.rs`",
    "without an extension": "Add bin/migrate",
    "a well-known name": "Build it with a `Dockerfile`",
    "a name with a dot": "Leave it out in `.gitignore`",
    "code beside it": "Add `parse_dates()` and `dates.parse` to `src/parser/dates.py`",
    "an address beside it": "As https://example.org/spec/dates.html says: src/parser/dates.py",
    "slashes in prose": "Add read/write and/or I/O to src/parser/dates.py for Node.js",
    "an id before it": "1.2 T-003 Write src/parser/dates.py",
    "double backticks": "Write ``src/parser/dates.py``",
}


@pytest.mark.parametrize("task", TICKED.values(), ids=TICKED)
def test_ticked(task: str) -> None:
    assert tick_boxes(f"- [ ] {task}\n".encode(), COMMITTED) == (
        f"- [x] {task}\n".encode(),
        (task,),
    )


OPEN = {
    "no file": "Parse dates",
    "a file that should be gone": "Delete src/parser/dates.py",
    "a file that should stay": "Do not change src/parser/dates.py",
    "tests of a file": "Add tests for src/parser/dates.py",
    "code only": "Add `parse_dates()`",
    "a file that was not committed": "Write src/parser/times.py",
    "one of two": "Write src/parser/dates.py and src/parser/times.py",
    "one of two, quoted": "Write `src/parser/dates.py` and `times.py`",
    "a name that two paths have": "Write lib.rs",
    "a folder": "Write `src/parser/`",
    "a folder without a slash behind it": "Write src/parser",
    "a folder beside a file": "Write src/parser/dates.py and the rest of src/parser/",
    "a pattern": "Write `src/parser/*.py`",
    "a pattern, bare": "Write src/**/dates.py",
    "the end of a name": "Write ates.py",
    "a name that goes on": "Write src/parser/dates.pyi",
    "a path that goes on before": "Write other/src/parser/dates.py",
    "above the root": "Write ../src/parser/dates.py",
    "another place": "Write /src/parser/dates.py",
    "letters of another size": "Write SRC/PARSER/DATES.PY",
    "an address": "Read https://example.org/src/parser/dates.py",
    "in a quoted command": "Run `python src/parser/times.py` for src/parser/dates.py",
}


@pytest.mark.parametrize("task", OPEN.values(), ids=OPEN)
def test_left_open(task: str) -> None:
    text = f"- [ ] {task}\n".encode()
    assert tick_boxes(text, COMMITTED) == (text, ())


DATES, CLIENT, TIMES = "src/parser/dates.py", "web/src/api/client.ts", "src/parser/times.py"
FILES = {
    "already ticked": (f"- [x] {DATES}\n- [X] {DATES}\n", f"- [x] {DATES}\n- [X] {DATES}\n"),
    "in code": (f"```\n- [ ] {DATES}\n```\n", f"```\n- [ ] {DATES}\n```\n"),
    "in a comment": (f"<!--\n- [ ] {DATES}\n-->\n", f"<!--\n- [ ] {DATES}\n-->\n"),
    "a box in the text": (f"- [ ] {DATES} - [ ] x\n", f"- [x] {DATES} - [ ] x\n"),
    "numbered, in an item": (f"- 1. [ ] {DATES}\n", f"- 1. [x] {DATES}\n"),
    "a tab in the box": (f"*\t[\t] {DATES}\n", f"*\t[x] {DATES}\n"),
    "optional": (f"# Optional\n- [ ] {DATES}\n", f"# Optional\n- [x] {DATES}\n"),
    "no newline at the end": (f"- [ ] {DATES}", f"- [x] {DATES}"),
    "line ends of all kinds": (
        f"x\r\n- [ ] {DATES}\r\n- [ ] y\r- [ ] {DATES}\r\n\n- [ ] {CLIENT}\n",
        f"x\r\n- [x] {DATES}\r\n- [ ] y\r- [x] {DATES}\r\n\n- [x] {CLIENT}\n",
    ),
    "more files below": (f"- [ ] {DATES}\n  and {TIMES}\n", f"- [ ] {DATES}\n  and {TIMES}\n"),
    "more files in an item below": (
        f"- [ ] {DATES}\n  - with {CLIENT}\n- see {TIMES}\n",
        f"- [x] {DATES}\n  - with {CLIENT}\n- see {TIMES}\n",
    ),
    "files only below": (f"- [ ] dates\n  in {DATES}\n", f"- [ ] dates\n  in {DATES}\n"),
    "a parent with an open child": (
        f"- [ ] {DATES}\n  - [ ] think\n  - [ ] {CLIENT}\n",
        f"- [ ] {DATES}\n  - [ ] think\n  - [x] {CLIENT}\n",
    ),
    "a parent with an open grandchild": (
        f"- [ ] {DATES}\n  - [ ] {CLIENT}\n    - [ ] think\n",
        f"- [ ] {DATES}\n  - [ ] {CLIENT}\n    - [ ] think\n",
    ),
    "a parent with an open grandchild of a ticked child": (
        f"- [ ] {DATES}\n  - [x] {CLIENT}\n    - [ ] think\n",
        f"- [ ] {DATES}\n  - [x] {CLIENT}\n    - [ ] think\n",
    ),
    "a parent whose children are ticked with it": (
        f"- [ ] {DATES}\n  - [ ] {CLIENT}\n  - [x] think\n",
        f"- [x] {DATES}\n  - [x] {CLIENT}\n  - [x] think\n",
    ),
    "a parent that names nothing": (
        f"- [ ] dates\n  - [ ] {DATES}\n",
        f"- [ ] dates\n  - [x] {DATES}\n",
    ),
    "a neighbour of an open box": (
        f"- [ ] think\n- [ ] {DATES}\n",
        f"- [ ] think\n- [x] {DATES}\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), FILES.values(), ids=FILES)
def test_files(before: str, after: str) -> None:
    assert tick_boxes(before.encode(), COMMITTED)[0] == after.encode()
    assert tick_boxes(after.encode(), COMMITTED) == (after.encode(), ())


def test_tasks_are_told_in_their_order() -> None:
    text = f"- [ ] 1 {DATES}\n  - [ ] 1.1 {CLIENT}\n- [ ] 2 think\n- [ ] 3 {CLIENT}\n".encode()
    assert tick_boxes(text, COMMITTED)[1] == (f"1 {DATES}", f"1.1 {CLIENT}", f"3 {CLIENT}")


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
def test_any_encoding_of_a_task_file(mark: bytes, codec: str) -> None:
    before, after = (mark + f"- [{sign}] é {DATES}\r\n".encode(codec) for sign in " x")
    assert tick_boxes(before, COMMITTED)[0] == after


@pytest.mark.parametrize(
    "text", [b"", b"\xff\xfe-\x00[", b"\xfe\xff\xd8\x00\xd8\x00", b"\xff\xfe\x00\xd8- [ ] x"]
)
def test_a_file_that_cannot_be_read_stays_as_it_is(text: bytes) -> None:
    assert tick_boxes(text, COMMITTED) == (text, ())


def test_bytes_that_are_no_text_are_kept() -> None:
    text = f"\udcff\n- [ ] {DATES} \udcfe\n".encode(errors="surrogateescape")
    assert tick_boxes(text, COMMITTED)[0] == text.replace(b"[ ]", b"[x]")


def test_nothing_committed_ticks_nothing() -> None:
    assert tick_boxes(b"- [ ] a.py\n", ())[1] == ()


pieces = st.sampled_from(
    ["- [ ] ", "- [x] ", "  ", "\t", "\n", "\r\n", "\r", DATES, CLIENT, TIMES, "`", "```", "x", " "]
)


@given(st.lists(pieces, max_size=40).map("".join))
def test_only_marks_of_open_boxes_change(markdown: str) -> None:
    before = markdown.encode()
    after, tasks = tick_boxes(before, COMMITTED)
    changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert len(changed) == len(tasks)
    assert all(after[at : at + 1] == b"x" for at in changed)
    assert tick_boxes(after, COMMITTED) == (after, ())
    left = {box.parent for box in boxes(after.decode()) if not box.done}
    was_done = {box.line for box in boxes(markdown) if box.done}
    assert not any(box.done and box.line in left - was_done for box in boxes(after.decode()))


@given(st.binary(max_size=300), st.lists(st.text(max_size=20), max_size=5))
def test_any_bytes_are_taken(text: bytes, committed: list[str]) -> None:
    assert len(tick_boxes(text, committed)[0]) == len(text)


@pytest.mark.parametrize("piece", ["`", "/", "a.", "**a", "a/", "::", "*/", "` a", "x://"])
def test_a_long_line_of_anything_is_read_in_seconds(piece: str) -> None:
    with cpu_limit():
        tick_boxes(b"- [ ] a.py " + piece.encode() * 20_000, COMMITTED)
