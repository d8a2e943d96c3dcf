"""Decide what runs of a check prove, and which run is needed next.

`judge_work` is a generator: it yields the run that it needs and is sent what that run showed, so the decision is written in
the order in which it is taken, a run that nothing depends on is never asked for, and the core starts no process.
"""

from collections.abc import Generator, Iterable, Iterator, Sized
from dataclasses import field, replace
from typing import Literal

from guard.core.base.first_use import dataclass
from guard.core.prove.file_roles import FileChanges
from guard.core.prove.outcome import CellName, CellRun, TestOutcome, silent_files, tests_in

Result = Literal["proven", "refuted", "review", "unverifiable"]
_MOST_RED_BEFORE = 0.05
_FEW_RED_BEFORE = 2
"""So many tests may be red before in a suite of any size: 1 of 10 is an old fault, not a broken environment."""


@dataclass(frozen=True)
class Need:
    """A run of the command that the decision depends on."""

    cell: CellName
    files: frozenset[str] | None = None
    """The test files that matter; None for all. A runner that cannot select runs all."""
    attempt: int = 0
    """0 for the first run; a run with a higher number must not be taken from a cache."""
    of_tests: bool = False
    """Whether `before` is that of the tests, which are held against an older baseline than failures are."""
    foreign: int = 0
    """The number of the merged commit of others whose `before` it is; 0 for the baseline's."""
    optional: bool = False
    """Whether only a note depends on it, so that it may be left out if it takes long."""


@dataclass(frozen=True)
class Terms:
    """What the user lets pass, and how often a difference is tried again."""

    reruns: int = 3
    installs: bool = False
    """Whether a set-up command installs what dependency files name."""
    are_tests: bool = True
    """Whether the command runs tests; a linter or a build has only `before` and `after`."""
    foreign: int = 0
    """How many commits of others the work has merged: what fails there is not the work's fault."""


@dataclass(frozen=True)
class ProofJudgement:
    """What the runs prove, with the names of the tests that decided it."""

    result: Result
    reason: str
    detail: str
    new_failures: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    newly_skipped: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    vacuous: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    tail: str = ""
    hangs: bool = False
    """Whether HEAD's run hangs and the baseline's does not."""


Steps = Generator[Need, CellRun, ProofJudgement]
_Part = Generator[Need, CellRun, ProofJudgement | None]


@dataclass
class _Notes:
    """What is learned on the way, whatever the result will be."""

    still_failing: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)
    vanished: set[str] = field(default_factory=set)
    newly_skipped: set[str] = field(default_factory=set)
    weakened: set[str] = field(default_factory=set)
    rewritten: set[str] = field(default_factory=set)
    vacuous: set[str] = field(default_factory=set)
    flaky: set[str] = field(default_factory=set)

    def conclude(
        self,
        result: Result,
        reason: str,
        detail: str,
        *,
        new: Iterable[str] = (),
        tail: str = "",
        hangs: bool = False,
    ) -> ProofJudgement:
        lists = {name: tuple(sorted(names)) for name, names in vars(self).items()}
        return ProofJudgement(
            result,
            reason,
            detail,
            new_failures=tuple(sorted(new)),
            tail=tail,
            hangs=hangs,
            **lists,
        )


def judge_work(change: FileChanges, terms: Terms) -> Steps:
    """Ask for the runs that are needed, and return what they prove."""
    notes = _Notes()
    after = yield Need("after")
    doubt = _doubt(after, notes)
    if doubt is not None:
        return doubt
    if after.end == "timeout":
        return (yield from _judge_hang(after, notes))
    if not after.has_started:
        return (yield from _judge_no_start(after, change, terms, notes))
    if not after.is_green:
        judgement = yield from _judge_red(after, change, terms, notes)
        if judgement is not None:
            return judgement
    judgement = yield from _judge_tests(after, change, terms, notes)
    if judgement is not None:
        return judgement
    if notes.still_failing:
        count = len(notes.still_failing)
        return notes.conclude(
            "proven",
            "no_new_failures",
            f"{_tests(count)} failed before and still do; no other does",
        )
    return notes.conclude("proven", "green", _describe_green(after))


def _describe_green(after: CellRun) -> str:
    if after.granularity == "exit":
        return "the command succeeds"
    return f"{_tests(len(after.passed))} passed"


def _tests(count: int) -> str:
    return f"{count} test" if count == 1 else f"{count:,} tests"


def _these(names: Sized) -> str:
    return _tests(len(names))


def _doubt(run: CellRun, notes: _Notes) -> ProofJudgement | None:
    """Return why a run says nothing about the code, whatever it reports."""
    if run.tampered is not None:
        return notes.conclude("refuted", "runner_tampered", run.tampered, tail=run.tail)
    if run.foreign_code:
        more = f" and {len(run.foreign_code) - 1} more" if run.foreign_code[1:] else ""
        said = f"the run loaded code of the work tree: {run.foreign_code[0]}{more}"
        return notes.conclude("unverifiable", "shared_code", said)
    if run.end == "disk_full":
        return notes.conclude("unverifiable", "disk_full", run.detail or "the disk is full")
    if run.end == "cannot_start":
        return notes.conclude(
            "unverifiable", "cannot_start", run.detail or "the command cannot be started"
        )
    return None


def _judge_hang(after: CellRun, notes: _Notes) -> Steps:
    before = yield Need("before")
    if before.has_started:
        said = f"the command does not end within {after.seconds:.0f} s; on the baseline it does"
        return notes.conclude("unverifiable", "hangs", said, tail=after.tail, hangs=True)
    said = f"the command does not end within {after.seconds:.0f} s, nor does it on the baseline"
    return notes.conclude("unverifiable", "timeout", said, tail=after.tail)


def _judge_no_start(after: CellRun, change: FileChanges, terms: Terms, notes: _Notes) -> Steps:
    how = _describe_no_start(after)
    before = yield Need("before")
    if not before.has_started:
        said = f"{how}, and it does not on the baseline either"
        return notes.conclude("unverifiable", "cannot_start", said, tail=after.tail)
    for number in range(1, terms.foreign + 1):
        there = yield Need("before", foreign=number)
        if not there.has_started:
            said = f"{how}, and it does not on a merged commit of others either"
            return notes.conclude("unverifiable", "cannot_start", said, tail=after.tail)
    if change.dependency_files and not terms.installs:
        said = f"{how}; {change.dependency_files[0]} changed, and nothing installed what it names"
        return notes.conclude("unverifiable", "dependencies_changed", said, tail=after.tail)
    return notes.conclude(
        "refuted", "does_not_start", f"{how}; on the baseline it does", tail=after.tail
    )


def _describe_no_start(run: CellRun) -> str:
    if run.uncollected:
        more = f" and {len(run.uncollected) - 1} more" if run.uncollected[1:] else ""
        return f"the command runs no test, because {run.uncollected[0]}{more} cannot be loaded"
    if run.granularity == "tests":
        why = f"{run.ending}; {run.detail}" if run.detail else run.ending
        return f"the command reports no test ({why})"
    return f"the command does not start ({run.ending})"


def _judge_red(after: CellRun, change: FileChanges, terms: Terms, notes: _Notes) -> _Part:
    failing = _failures(after)
    files = _files(failing.values())
    # The baseline has no new files: if only those fail, all is run, because a baseline that runs no test says nothing.
    known = files - set(change.new_modules) if files is not None else None
    before = yield Need("before", known or None)
    if not before.has_started:
        why = before.detail or "the command does not start on the baseline"
        said = f"{why}, so nothing can be compared"
        return notes.conclude("unverifiable", "cannot_start", said, tail=after.tail)
    if not failing or "exit" in (after.granularity, before.granularity):
        return (yield from _judge_exit_code(after, before, terms, notes))
    failed_before = _failures(before)
    red = len(failed_before)
    if red > max(_FEW_RED_BEFORE, _MOST_RED_BEFORE * len(after.tests)):
        said = f"{_tests(red)} fail on the baseline, more than {_MOST_RED_BEFORE:.0%} of them"
        return notes.conclude("unverifiable", "red_before", said, tail=after.tail)
    still = _known_failures(failing, failed_before, after)
    notes.still_failing |= still
    notes.fixed |= failed_before.keys() & after.passed.keys()
    new = {name: test for name, test in failing.items() if name not in still}
    yield from _leave_out_foreign(new, terms, notes)
    if not new:
        return None
    confirmed = yield from _try_again(new, before, terms, notes)
    if confirmed:
        first = sorted(confirmed)[0]
        verb = "fails" if len(confirmed) == 1 else "fail"
        said = f"{_these(confirmed)} {verb} that did not fail before: {first}"
        return notes.conclude(
            "refuted", "new_failures", said, new=confirmed, tail=_tail(confirmed, new, after)
        )
    said = f"{_tests(len(notes.flaky))} failed and passed on the same code"
    return notes.conclude("unverifiable", "flaky", said, tail=after.tail)


def _leave_out_foreign(
    new: dict[str, TestOutcome], terms: Terms, notes: _Notes
) -> Generator[Need, CellRun, None]:
    """Leave out the failures that a merged commit of others had already."""
    for number in range(1, terms.foreign + 1):
        if not new:
            return
        there = yield Need("before", foreign=number)
        known = new.keys() & _failures(there).keys()
        notes.still_failing |= known
        for name in known:
            del new[name]


def _failures(run: CellRun) -> dict[str, TestOutcome]:
    """Return the tests that failed; a file that cannot be loaded counts as one."""
    files = {file: TestOutcome(file, file, "failed", "cannot_run") for file in run.uncollected}
    return {**files, **run.failed}


def _files(tests: Iterable[TestOutcome]) -> frozenset[str] | None:
    files = {test.file for test in tests}
    return None if None in files or not files else frozenset(file for file in files if file)


def _known_failures(
    failing: dict[str, TestOutcome], before: dict[str, TestOutcome], after: CellRun
) -> set[str]:
    """Return the failures that were there before, also in a test that has only moved to another file."""
    gone = {_bare(name) for name in before if name not in after.tests}
    return {name for name in failing if name in before or _bare(name) in gone}


def _bare(name: str) -> str:
    return name.partition("::")[2]


def _try_again(
    new: dict[str, TestOutcome], before: CellRun, terms: Terms, notes: _Notes
) -> Generator[Need, CellRun, set[str]]:
    """Run what differs again in both trees, and return what fails each time on HEAD and never on the baseline."""
    suspects = set(new)
    for attempt in range(1, terms.reruns + 1):
        again = yield Need("after", _files(new[name] for name in suspects), attempt)
        mixed = {name for name in suspects if name in again.passed}
        there = {name for name in suspects - mixed if name in before.tests}
        if there:
            once_more = yield Need("before", _files(new[name] for name in there), attempt)
            mixed |= {name for name in there if name in once_more.failed}
        notes.flaky |= mixed
        suspects -= mixed
        if not suspects:
            break
    return suspects


def _judge_exit_code(after: CellRun, before: CellRun, terms: Terms, notes: _Notes) -> _Part:
    """Judge a run that is red without a test that is known to fail."""
    code = after.ending
    if not before.is_green:
        are_known = before.granularity == after.granularity == "tests"
        are_whole = after.exit_code != 0 and before.is_whole and after.is_whole
        if are_known and are_whole and before.exit_code == after.exit_code:
            notes.still_failing.add(code)
            return None
        said = f"the command fails ({code}), and it fails on the baseline ({before.ending})"
        if not after.is_whole and after.detail:
            said = f"{after.detail}, so its tests cannot be compared"
        return notes.conclude("unverifiable", "red_before", said, tail=after.tail)
    for number in range(1, terms.foreign + 1):
        there = yield Need("before", foreign=number)
        if there.exit_code != 0:
            said = f"the command fails ({code}), and it fails on a merged commit of others"
            return notes.conclude("unverifiable", "red_before", said, tail=after.tail)
    for attempt in range(1, terms.reruns + 1):
        again = yield Need("after", None, attempt)
        if again.is_green:
            said = f"the command failed ({code}) and succeeded on the same code"
            return notes.conclude("unverifiable", "flaky", said, tail=after.tail)
    although = ", although no test failed" if after.granularity == "tests" else ""
    fails = f"the command fails ({code}){although}" if after.exit_code else "no test passes"
    if not after.exit_code and not after.is_whole and after.detail:
        fails = after.detail
    said = f"{fails}; on the baseline it succeeds"
    return notes.conclude("refuted", "new_failures", said, tail=after.tail)


def _tail(names: set[str], tests: dict[str, TestOutcome], run: CellRun) -> str:
    said = [f"{name}\n{tests[name].text}" for name in sorted(names)[:3] if tests[name].text]
    return "\n\n".join(said) or run.tail


def _judge_old_tests(after: CellRun, change: FileChanges, terms: Terms, notes: _Notes) -> _Part:
    """Hold HEAD's code against the tests that the baseline had."""
    old = yield Need("old_tests", change.old_selection)
    doubt = _doubt(old, notes)
    if doubt is not None:
        return doubt
    if not old.has_started and not old.uncollected:
        before = yield Need("before", change.old_selection, of_tests=True)
        if not before.has_started:
            return None  # There was no test that could have been weakened.
        said = "the tests of the baseline cannot be run on the new code"
        return notes.conclude("review", "tests_rewritten", said, tail=old.tail)
    if old.granularity == "exit":
        return (yield from _judge_old_exit(old, notes))
    for name in old.passed:
        _note_absence(name, after, notes)
    failures = _failures(old)
    if not failures:
        return None
    before = yield Need("before", _files(failures.values()), of_tests=True)
    if not old.tests and not before.tests and not change.changed_modules:
        said = "the tests of the baseline cannot be loaded, neither there nor on the new code"
        return notes.conclude("review", "tests_rewritten", said, tail=old.tail)
    suspects = dict(_expand(failures, before))
    yield from _drop_flaky(suspects, old, terms, notes)
    for name, test in suspects.items():
        _hold_against(name, test, before, _with_moved(name, after, change), notes)
    return _conclude_old_tests(suspects, old, notes)


def _note_absence(name: str, after: CellRun, notes: _Notes) -> None:
    now = after.tests.get(name)
    if now is None:
        notes.vanished.add(name)
    elif now.state == "skipped":
        notes.newly_skipped.add(name)


def _expand(failures: dict[str, TestOutcome], before: CellRun) -> Iterator[tuple[str, TestOutcome]]:
    """Yield the tests that failed; for a file that cannot be loaded, those that it had."""
    for name, test in failures.items():
        if name != test.file:
            yield name, test
            continue
        for known, outcome in before.tests.items():
            if outcome.file == name:
                yield known, TestOutcome(known, name, "failed", "cannot_run", test.text)


def _drop_flaky(
    suspects: dict[str, TestOutcome], old: CellRun, terms: Terms, notes: _Notes
) -> Generator[Need, CellRun, None]:
    for attempt in range(1, terms.reruns + 1):
        ran = {name: test for name, test in suspects.items() if name in old.tests}
        if not ran:
            return
        again = yield Need("old_tests", _files(ran.values()), attempt)
        for name in ran.keys() & again.passed.keys():
            notes.flaky.add(name)
            del suspects[name]


def _hold_against(
    name: str, old: TestOutcome, before: CellRun, after: CellRun, notes: _Notes
) -> None:
    """Sort in a test of the baseline that fails on HEAD's code."""
    was, now = before.tests.get(name), after.tests.get(name)
    if was is None or was.state == "skipped" or (now is not None and now.state == "failed"):
        return
    if now is not None and now.state == "passed":
        notes.rewritten.add(name)
    elif was.state == "failed":
        notes.weakened.add(name)
    elif old.fault == "cannot_run":
        notes.rewritten.add(name)
    else:
        notes.weakened.add(name)


def _with_moved(name: str, after: CellRun, change: FileChanges) -> CellRun:
    """Return HEAD's run with a test under its old name, if it is in a new file now and is run there."""
    if name in after.tests:
        return after
    for other, test in after.tests.items():
        is_moved = _bare(other) == _bare(name) and test.file in change.new_modules
        if is_moved and test.state != "skipped":
            return replace(after, tests={**after.tests, name: test})
    return after


def _conclude_old_tests(
    suspects: dict[str, TestOutcome], old: CellRun, notes: _Notes
) -> ProofJudgement | None:
    if notes.weakened:
        said = (
            f"{_these(notes.weakened)} of the baseline, removed or skipped, would fail on this code"
        )
        return notes.conclude(
            "refuted", "tests_weakened", said, tail=_tail(notes.weakened, suspects, old)
        )
    if notes.rewritten:
        said = f"{_these(notes.rewritten)} of the baseline, rewritten, would fail on this code"
        return notes.conclude(
            "review", "tests_rewritten", said, tail=_tail(notes.rewritten, suspects, old)
        )
    return None


def _judge_old_exit(old: CellRun, notes: _Notes) -> _Part:
    if old.is_green:
        return None
    before = yield Need("before", of_tests=True)
    if not before.is_green:
        return None
    said = "tests were changed, and as they were before they fail on this code"
    return notes.conclude("review", "tests_rewritten", said, tail=old.tail)


def _judge_tests(after: CellRun, change: FileChanges, terms: Terms, notes: _Notes) -> _Part:
    """Judge a run without new failures by what was done to the tests, and by what they cannot settle."""
    if terms.are_tests:
        parts = (
            _judge_old_tests(after, change, terms, notes) if change.needs_old_tests else None,
            _judge_skipped(after, change, notes) if change.code else None,
            _judge_silent(after, change, notes) if change.shadowed else None,
        )
        for part in filter(None, parts):
            judgement = yield from part
            if judgement is not None:
                return judgement
    doubt = change.doubts[0] if change.doubts else None
    if doubt is None and after.patched is not None:
        before = yield Need("before")
        doubt = after.patched if before.patched != after.patched else None
    if doubt is None and terms.are_tests and after.written:
        before = yield Need("before")
        own = [path for path in after.written if path not in before.written]
        doubt = f"the run writes {own[0]}, which is code of the commit" if own else None
    if doubt is not None:
        return notes.conclude("review", "doubtful_change", doubt)
    if terms.are_tests and change.new_modules:
        yield from _find_vacuous(after, change, notes)
    return None


def _judge_skipped(after: CellRun, change: FileChanges, notes: _Notes) -> _Part:
    """Look for tests that are skipped now, and by nothing that was changed in the tests: so by the code."""
    skipped = {
        name: test
        for name, test in after.tests.items()
        if test.state == "skipped" and test.file not in change.new_modules
    }
    if not skipped:
        return None
    before = yield Need("before", _files(skipped.values()), of_tests=True)
    # Where its old version was tried and passes, a skipped test is noted already.
    by_code = (skipped.keys() & before.passed.keys()) - notes.newly_skipped
    if not by_code:
        return None
    notes.newly_skipped |= by_code
    said = f"{_these(by_code)} that passed before: skipped by the code, and not by a changed test"
    return notes.conclude("review", "tests_rewritten", said)


def _judge_silent(after: CellRun, change: FileChanges, notes: _Notes) -> _Part:
    """Look for tests that did not change and are not run any more: their file or its folder is hidden from the runner."""
    silent = silent_files(after.tests, change.shadowed)
    if after.granularity == "exit" or not silent:
        return None
    before = yield Need("before", silent, of_tests=True)
    gone = {name for name, test in before.passed.items() if test.file and name not in after.tests}
    lost = gone & tests_in(before.tests, silent).keys()
    if not lost:
        return None
    notes.vanished |= lost
    said = f"{_these(lost)} that passed before: not changed, and not run any more"
    return notes.conclude("review", "tests_rewritten", said)


def _find_vacuous(
    after: CellRun, change: FileChanges, notes: _Notes
) -> Generator[Need, CellRun, None]:
    """Note the new tests that pass without the change, too."""
    if after.granularity != "tests" or not change.code:
        return
    run = yield Need("old_code", frozenset(change.new_modules), optional=True)
    notes.vacuous |= {
        name
        for name, test in after.passed.items()
        if test.file in change.new_modules and name in run.passed
    }
