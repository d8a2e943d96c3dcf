"""Take back each part of committed work in turn, to see which of its lines a test holds."""

import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from posixpath import basename, dirname, splitext

from guard.context.invocation import Invocation
from guard.core.base.text import escape, fit_line, plural
from guard.core.prove.calibration import CalibratedCheck
from guard.core.prove.file_roles import is_dependency_file
from guard.core.prove.hunks import (
    Held,
    HeldEnded,
    Hunk,
    HunkTrial,
    held_files,
    hunks_of,
    is_prose,
    notice,
)
from guard.core.prove.judge_work import Need
from guard.core.prove.outcome import CellRun
from guard.core.prove.report import MOST_NAMES
from guard.core.prove.settings import ProveCheck, ProveSettings
from guard.errors import WrongUsage
from guard.prove.cells import Cells, TimeOver
from guard.prove.prove import make_cells, open_checkouts
from guard.prove.tree_diff import Entry, TreeDiff
from guard.prove.work import CommittedWork, ProveTerms
from guard.system.clock import Deadline

_FILES = ("100644", "100755")
_LEAST_SECONDS, _LONGER = 30.0, 5.0
"""A run without a part of the work hangs if it takes so much longer than one with it."""
_COMMON = frozenset({"__init__", "__main__", "index", "main", "mod", "lib"})
_WORD = re.compile(r"\w[\w-]*")
_MOST_NOTES = 20


class _CannotTell(Exception):
    """HEAD's own run says nothing that a part of the work could be held against."""


def find_held(
    guard: Invocation,
    terms: ProveTerms,
    max_time: float | None = None,
    say: Callable[[str], None] | None = None,
) -> Held:
    """Take back each part of the work on its own, and return which the tests notice; nothing is recorded.

    It ends after `max_time` seconds (`prove.total_seconds`), or by Ctrl-C, with the part that is done.
    """
    begun = time.monotonic()
    settings = terms.settings or guard.settings(None, terms.flags).prove
    work = CommittedWork(guard, terms, settings)
    checks = [check for check in work.checks if check.kind == "tests"]
    if not checks:
        raise WrongUsage(
            "none of the checks runs tests", "name a command that does: --command 'pytest -q'"
        )
    live = guard.output.live()
    limit = Deadline(settings.total_seconds if max_time is None else max_time)
    search = _HunkSearch(guard, work, limit, say or live.say)
    ended: HeldEnded = "complete"
    try:
        search.run(checks)
    except TimeOver:
        ended = "max_time"
    except _CannotTell as error:
        ended, search.detail = "unverifiable", str(error)
    except KeyboardInterrupt:
        ended = "interrupted"
    finally:
        live.clear()
    return search.report(checks, ended, time.monotonic() - begun)


@dataclass
class _HunkSearch:
    guard: Invocation
    work: CommittedWork
    limit: Deadline
    say: Callable[[str], None]
    trials: dict[Hunk, HunkTrial] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    detail: str = ""
    runs: int = 0

    def run(self, checks: list[ProveCheck]) -> None:
        checkouts = open_checkouts(self.guard)
        with checkouts.scratch() as scratch:
            for check in checks:
                bases = self.work.bases_of(check)
                missing = self.work.find_missing(bases)
                if missing is not None:
                    raise _CannotTell(missing.detail)
                change = self.work.diff_of(check, bases)
                if not self.work.concerns(check, bases, change):
                    continue
                cells = make_cells(
                    *(self.work, check, change, checkouts, self.limit),
                    self._say,
                    scratch / check.name,
                )
                try:
                    self._run(cells, self._find_hunks(change))
                finally:
                    self.notes |= cells.notes

    def _say(self, line: str) -> None:
        done = sum(trial.result != "untried" for trial in self.trials.values())
        self.say(f"{done} of {plural(len(self.trials), 'part')} tried: {line}")

    def _find_hunks(self, change: TreeDiff) -> list[Hunk]:
        code = set(change.files.code)
        found = [
            hunk
            for entry in change.entries
            if entry.path in code
            for hunk in self._hunks_of(entry, change)
        ]
        # What another check of the same work holds is held.
        for hunk in found:
            if self.trials.get(hunk, HunkTrial(hunk)).result != "held":
                self.trials[hunk] = HunkTrial(hunk)
        # There may be no time for all.
        return sorted(found, key=lambda hunk: -hunk.size)

    def _hunks_of(self, entry: Entry, change: TreeDiff) -> Iterator[Hunk]:
        path = entry.path
        sides = [side for side in (entry.before, entry.after) if side is not None]
        base = change.read(change.base, path) if entry.before else None
        head = change.read(change.head, path) if entry.after else None
        is_read = (base is None, head is None) == (entry.before is None, entry.after is None)
        is_text = b"\0" not in (base or b"") + (head or b"")
        is_file = all(mode in _FILES for mode, _ in sides)
        if not (is_file and is_read and is_text) or is_prose(path) or is_dependency_file(path):
            self.left_out[path] = None
            return
        patch = b""
        if base is not None and head is not None:
            assert change.base
            words = ("-p", "-U0", "--text", "--no-renames", "--no-ext-diff", "--no-textconv")
            ends = (change.base, change.head, "--", path)
            patch = change.git.ask("diff-tree", *words, *ends)
        yield from hunks_of(path, base, head, patch)

    def _run(self, cells: Cells, hunks: list[Hunk]) -> None:
        if not hunks:
            return
        head = cells.answer(Need("after"))
        self.runs += not head.cached
        if head.tampered or head.foreign_code or not head.is_green:
            said = head.tampered or next(iter(head.foreign_code), None) or head.detail
            raise _CannotTell(f"the tests of the work are not green: {said or head.ending}")
        limit = max(_LEAST_SECONDS, _LONGER * head.seconds)
        seconds = min(cells.settings.timeout_seconds, limit)
        cells.settings = cells.settings.model_copy(update={"timeout_seconds": seconds})
        trier = _Trier(cells, head)
        for hunk in hunks:
            if self.trials[hunk].result == "held":
                continue
            try:
                self.trials[hunk] = trier.try_without(hunk)
            finally:
                self.runs += trier.runs
                trier.runs = 0

    def report(self, checks: list[ProveCheck], ended: HeldEnded, seconds: float) -> Held:
        files = tuple(held_files(self.trials.values()))
        bases = [self.work.bases_of(check).tests for check in checks]
        return Held(
            head=self.work.head,
            baseline=bases[0],
            checks=tuple(CalibratedCheck(name=one.name, command=one.command) for one in checks),
            ended=ended,
            detail=fit_line(escape(self.detail)),
            held=sum(file.held for file in files),
            not_held=sum(file.not_held for file in files),
            untried=sum(file.untried for file in files),
            files=files,
            left_out=tuple(fit_line(escape(path)) for path in self.left_out)[:MOST_NAMES],
            runs=self.runs,
            seconds=round(seconds, 3),
            notes=tuple(fit_line(escape(note)) for note in self.notes)[:_MOST_NOTES],
        )


@dataclass
class _Trier:
    """Runs one check without a part of the work: first the tests that came with it or name its file, then the others."""

    cells: Cells
    head: CellRun
    runs: int = 0

    def try_without(self, hunk: Hunk) -> HunkTrial:
        tree = self._tree_without(hunk)
        for files in self._selections(hunk.path):
            run = self._run(tree, files)
            if run.foreign_code or run.tampered or run.end in ("disk_full", "cannot_start"):
                said = run.tampered or run.detail or "it loads code of the work tree"
                self.cells.notes[f"{hunk.path} cannot be tried: {said}"] = None
                return HunkTrial(hunk)
            noticed = notice(self.head, run)
            if noticed is not None and self._is_steady(tree, run, noticed[1]):
                return HunkTrial(hunk, "held", *noticed)
        return HunkTrial(hunk, "not_held")

    def _run(self, tree: str, files: frozenset[str] | None, attempt: int = 0) -> CellRun:
        run = self.cells.try_tree(tree, files, attempt)
        self.runs += not run.cached
        return run

    def _tree_without(self, hunk: Hunk) -> str:
        checkouts, change = self.cells.checkouts, self.cells.change
        tree, path = checkouts.tree_of(change.head), os.fsencode(hunk.path)
        before = change.read(change.base, hunk.path)
        text = hunk.take_back(change.read(change.head, hunk.path) or b"")
        if text == (before or b""):
            # The file as it was, with its mode; also none at all.
            if before is None:
                return checkouts.compose(tree, [path])
            assert change.base
            return checkouts.compose(tree, (), [(path, checkouts.tree_of(change.base))])
        return checkouts.compose(tree, (), (), {path: text})

    def _selections(self, path: str) -> list[frozenset[str] | None]:
        files = frozenset(test.file or "" for test in self.head.tests.values())
        if not files or any(not file.endswith(".py") for file in files):
            return [None]  # Only runners of Python can be told which files to run.
        near = files & (self._came_along() | self._naming(path))
        return [some for some in (near, files - near) if some]

    def _came_along(self) -> set[str]:
        found = self.cells.change.files
        return {*found.changed_modules, *found.new_modules}

    def _naming(self, path: str) -> set[str]:
        """Return the files of HEAD that name this one."""
        stem = splitext(basename(path))[0]
        word = basename(dirname(path)) if stem in _COMMON else stem
        if not _WORD.fullmatch(word):
            return set()
        change = self.cells.change
        listed = change.git.ask("grep", "-lzwF", "-e", word, change.head, codes=(0, 1))
        return {os.fsdecode(name).partition(":")[2] for name in listed.split(b"\0")}

    def _is_steady(self, tree: str, run: CellRun, names: tuple[str, ...]) -> bool:
        """Tell whether what failed fails again: a test that only sometimes passes holds nothing."""
        files = frozenset(
            test.file for name in names if (test := run.failed.get(name)) and test.file
        )
        settings: ProveSettings = self.cells.settings
        if not files or not settings.reruns:
            return True
        again = self._run(tree, files, attempt=1)
        return not again.passed.keys() >= set(names)
