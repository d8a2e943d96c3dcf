"""The document `guard/held/1`: which changed lines a test holds, and the hunks that are taken back one by one to see it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from posixpath import basename, splitext
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Line, Oid, Report
from guard.core.base.text import escape, fit_line, plural
from guard.core.iteration.facts import Seconds
from guard.core.prove.calibration import CalibratedCheck
from guard.core.prove.outcome import CellRun
from guard.core.prove.report import Names

HeldResult = Literal["held", "not_held", "untried"]
HeldBy = Literal["failing_test", "no_start", "hang", "exit_code"]
HeldEnded = Literal["complete", "max_time", "interrupted", "unverifiable"]
_RESULTS: tuple[HeldResult, ...] = ("held", "not_held", "untried")
_HEADER = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_INDENTATION = re.compile(rb"[ \t]*")
_PROSE = frozenset({".md", ".rst", ".txt", ".adoc"})
_HASHES = frozenset({".py", ".pyi", ".rb", ".sh", ".ex", ".exs", ".toml", ".yml", ".yaml", ".cfg"})
_REMARKS = (b"//", b"/*", b"*/", b"* ")
_NOTHING = "no line changed that a test could hold"
_MOST_TESTS, _MOST_SHOWN = 5, 20


def lines_of(data: bytes) -> list[bytes]:
    """Split as git does, at line feeds alone."""
    return _LINE.findall(data)


@dataclass(frozen=True)
class Hunk:
    """A part of a file's change: lines of HEAD, and what stood in their place."""

    path: str
    start: int
    """The number of lines before it in HEAD."""
    new: tuple[bytes, ...]
    old: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """How many lines changed, but for blank ones: those that HEAD has, or those that it no longer has."""
        return sum(bool(line.strip()) for line in self.new or self.old)

    def take_back(self, head: bytes) -> bytes:
        """Return the file as it would be without this part of the change."""
        lines = lines_of(head)
        return b"".join([*lines[: self.start], *self.old, *lines[self.start + len(self.new) :]])


def is_prose(path: str) -> bool:
    return splitext(basename(path))[1].lower() in _PROSE


def hunks_of(path: str, base: bytes | None, head: bytes | None, patch: bytes) -> list[Hunk]:
    """Return what can be taken back on its own; `patch` is git's, without context, of a file that both commits have.

    What was only added is taken back block by block. Blank lines and lines that are only comments are left out: no test
    can hold them.
    """
    before, after = lines_of(base or b""), lines_of(head or b"")
    if base is None or head is None:
        found = [Hunk(path, 0, tuple(after), tuple(before))]
    else:
        found = [_hunk(path, before, after, match) for match in _HEADER.finditer(patch)]
    pieces = [piece for hunk in found for piece in ([hunk] if hunk.old else _blocks(hunk))]
    return [hunk for hunk in pieces if _says_something(hunk)]


def _hunk(
    path: str, before: Sequence[bytes], after: Sequence[bytes], match: re.Match[bytes]
) -> Hunk:
    of_base, of_head = _part(match[1], match[2]), _part(match[3], match[4])
    return Hunk(path, of_head.start, tuple(after[of_head]), tuple(before[of_base]))


def _part(first: bytes, count: bytes | None) -> slice:
    # A part without lines is named after the line before it.
    length = 1 if count is None else int(count)
    start = int(first) - (length > 0)
    return slice(start, start + length)


def _blocks(hunk: Hunk) -> Iterator[Hunk]:
    """Cut added lines at blank lines before the least indentation: there a function, a class or a method begins."""
    indentations = [_indentation(line) for line in hunk.new]
    least = min((one for one in indentations if one is not None), default=0)
    begins = [
        number
        for number in range(1, len(hunk.new))
        if indentations[number] == least and indentations[number - 1] is None
    ]
    for start, stop in pairwise([0, *begins, len(hunk.new)]):
        lines = hunk.new[start:stop]
        while lines and not lines[-1].strip():
            lines = lines[:-1]
        yield replace(hunk, start=hunk.start + start, new=lines)


def _indentation(line: bytes) -> int | None:
    found = _INDENTATION.match(line)
    assert found
    return len(found[0]) if line.strip() else None


def _says_something(hunk: Hunk) -> bool:
    marks = (b"#",) if splitext(hunk.path)[1] in _HASHES else _REMARKS
    lines = (line.strip() for line in (*hunk.new, *hunk.old))
    return any(line and not line.startswith(marks) for line in lines)


def notice(head: CellRun, without: CellRun) -> tuple[HeldBy, tuple[str, ...]] | None:
    """Return how the tests notice that a hunk is missing, and which; None if they do not.

    `head` is what they said of HEAD, which was green.
    """
    if without.end == "timeout":
        return "hang", ()
    if without.is_green:
        return None
    failing = tuple(sorted(without.failed.keys() & head.passed.keys()))
    if failing:
        return "failing_test", failing
    if without.granularity == "tests" and (without.uncollected or not without.tests):
        return "no_start", without.uncollected
    return "exit_code", ()


class HeldHunk(Frozen):
    """A part of the change that was taken back, or would have been."""

    line: Count
    """Its first line in HEAD; if it only removes lines, the line after which they stood."""
    last_line: Count
    lines: Count
    """How many lines it adds or changes, or else removes; blank ones do not count."""
    removes: bool
    """Whether it only removes lines."""
    result: HeldResult
    by: HeldBy | None
    """How the tests noticed that it was taken back; null if they did not."""
    tests: Names
    """The first tests that failed then, or could not be loaded."""


class HeldFile(Frozen):
    """What of one file a test holds, counted in changed lines."""

    path: Line
    held: Count
    not_held: Count
    untried: Count
    hunks: tuple[HeldHunk, ...]


class Held(Report):
    """What `guard prove --held` prints: how many of the changed lines a test holds."""

    schema_: Literal["guard/held/1"] = Field("guard/held/1", alias="schema")
    head: Oid
    baseline: Oid | None
    checks: tuple[CalibratedCheck, ...]
    ended: HeldEnded
    """`unverifiable`: HEAD's own tests are not green, so that nothing can be told; `detail` says why."""
    detail: Line
    held: Count
    not_held: Count
    untried: Count
    files: tuple[HeldFile, ...]
    left_out: tuple[Line, ...]
    """Files of the change that no test can hold: prose, dependencies, links, binaries."""
    runs: Count
    seconds: Seconds
    notes: tuple[str, ...]


@dataclass(frozen=True)
class HunkTrial:
    """What taking back a hunk showed."""

    hunk: Hunk
    result: HeldResult = "untried"
    by: HeldBy | None = None
    tests: tuple[str, ...] = ()

    @property
    def summary(self) -> HeldHunk:
        hunk = self.hunk
        return HeldHunk(
            line=hunk.start + bool(hunk.new),
            last_line=hunk.start + len(hunk.new),
            lines=hunk.size,
            removes=not hunk.new,
            result=self.result,
            by=self.by,
            tests=tuple(escape(name)[:1024] for name in self.tests[:_MOST_TESTS]),
        )


def held_files(trials: Iterable[HunkTrial]) -> Iterator[HeldFile]:
    ordered = sorted(trials, key=lambda trial: (trial.hunk.path, trial.hunk.start))
    for path, group in groupby(ordered, lambda trial: trial.hunk.path):
        own = [trial.summary for trial in group]
        counts = {result: _count(own, result) for result in _RESULTS}
        yield HeldFile(path=fit_line(escape(path)), hunks=tuple(own), **counts)


def _count(hunks: Iterable[HeldHunk], result: HeldResult) -> int:
    return sum(hunk.lines for hunk in hunks if hunk.result == result)


def held_lines(report: Held) -> Iterator[str]:
    """Say for people which changed lines a test holds."""
    if report.ended == "unverifiable":
        yield f"unverifiable: {report.detail}"
        return
    total = report.held + report.not_held + report.untried
    tried = f", not tried: {report.untried}" if report.untried else ""
    held = f"held by a test: {report.held} of {plural(total, 'changed line')}"
    yield f"{held}, not held: {report.not_held}{tried}" if total else _NOTHING
    yield from _WHY_NOT_ALL.get(report.ended, ())
    for file in report.files:
        yield f"  {file.path}: {file.held} of {file.held + file.not_held + file.untried}"
        bare = [hunk for hunk in file.hunks if hunk.result == "not_held"]
        for hunk in bare[:_MOST_SHOWN]:
            yield f"    no test notices without {_describe(hunk)}"
        if len(bare) > _MOST_SHOWN:
            yield f"    and without {plural(len(bare) - _MOST_SHOWN, 'more part')}"
    yield from (
        f"  left out, no test can hold it: {path}" for path in report.left_out[:_MOST_SHOWN]
    )
    if len(report.left_out) > _MOST_SHOWN:
        yield f"  left out: and {plural(len(report.left_out) - _MOST_SHOWN, 'more file')}"
    yield from (f"  note: {note}" for note in report.notes)
    yield f"  {plural(report.runs, 'run')}, {report.seconds:.1f} s in all"


_WHY_NOT_ALL: dict[str, tuple[str, ...]] = {
    "max_time": ("  the time was over; --max-time SECONDS gives more",),
    "interrupted": ("  interrupted",),
}


def _describe(hunk: HeldHunk) -> str:
    if hunk.removes:
        return f"the removal of {plural(hunk.lines, 'line')} after line {hunk.line}"
    if hunk.last_line == hunk.line:
        return f"line {hunk.line}"
    return f"lines {hunk.line} to {hunk.last_line}"
