"""The document `guard/calibration/1`: what the proof would have said of a repository's own history, and what that suggests."""

import json
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Line, Oid, Report, Text
from guard.core.base.text import escape, fit_line, plural
from guard.core.iteration.facts import Seconds
from guard.core.prove.report import MOST_NAMES, Names, Proof
from guard.core.prove.settings import ProveSettings
from guard.core.prove.summary import ProofResult

Ended = Literal["complete", "history", "max_time", "interrupted"]
_MOST_SHOWN, _MOST_TAIL = 10, 5
_MANY_REVIEWS = 0.25
_ENOUGH_COMMITS = 10
_ROOMY, _ROOM = 30, 10
_LEAST_TIMEOUT = 60
_MOST_RERUNS = 5
_NOT_INSTALLED = frozenset({"dependencies_changed", "cannot_start", "shared_code"})


class CalibratedCommit(Frozen):
    """What the proof would have said of one commit, held against its first parent."""

    commit: Oid
    parent: Oid
    subject: Line
    result: ProofResult
    reason: Line
    detail: Line
    check: Id | None
    """The check that decided."""
    new_failures: Names
    weakened: Names
    rewritten: Names
    flaky: Names
    tail: Text
    """The last lines of what failed, unless it is proven."""
    runs: Count
    """How many runs of the command its proof needs."""
    cached: Count
    """How many of its cells were known already, because its child or an earlier proof had needed them."""
    seconds: Seconds
    """How long its runs take, those included that were known already."""
    single_run_seconds: Seconds
    """How long one run of each check takes on it."""


class CalibratedCheck(Frozen):
    name: Id
    command: str


class CalibrationCost(Frozen):
    """What the proofs cost; a run that was known already counts with the time that it once took."""

    seconds: Seconds
    """How long the calibration itself took."""
    run_seconds: Seconds
    """The median of one run of the command."""
    longest_seconds: Seconds
    """The longest run of the command."""
    ratio: Seconds | None
    """All runs of all proofs, in ratio to one run for each commit; null if none was timed."""
    runs: Count


class SettingProposal(Frozen):
    """A setting that would suit the repository better."""

    key: Line
    value: Line
    """As TOML."""
    why: Line


class Calibration(Report):
    """What `guard prove --calibrate` prints: the newest commits, each proven against its first parent."""

    schema_: Literal["guard/calibration/1"] = Field("guard/calibration/1", alias="schema")
    head: Oid
    checks: tuple[CalibratedCheck, ...]
    asked: Count
    """How many commits were to be replayed."""
    ended: Ended
    """`history`: there are no more commits; `max_time` and `interrupted`: only a part was replayed."""
    proven: Count
    review: Count
    refuted: Count
    unverifiable: Count
    commits: tuple[CalibratedCommit, ...]
    """The newest first."""
    flaky: Names
    leaks: tuple[Line, ...]
    """Code of the work tree that runs have loaded."""
    cost: CalibrationCost
    proposals: tuple[SettingProposal, ...]
    notes: tuple[str, ...]


def calibrated_commit(proof: Proof, parent: str, subject: str) -> CalibratedCommit:
    cells = [cell for check in proof.checks for cell in check.cells.values()]
    single = [check.cells["after"] for check in proof.checks if "after" in check.cells]
    return CalibratedCommit(
        commit=proof.head,
        parent=parent,
        subject=fit_line(escape(subject)),
        result=proof.result,
        reason=proof.reason,
        detail=proof.detail,
        check=proof.check,
        new_failures=proof.new_failures,
        weakened=proof.weakened,
        rewritten=proof.rewritten,
        flaky=proof.flaky,
        tail="" if proof.result == "proven" else proof.tail,
        runs=sum(max(1, cell.ran) for cell in cells),
        cached=sum(cell.cached for cell in cells),
        seconds=round(sum(cell.seconds for cell in cells), 3),
        single_run_seconds=round(sum(cell.seconds / max(1, cell.ran) for cell in single), 3),
    )


def make_calibration(
    proofs: Sequence[tuple[CalibratedCommit, Proof]],
    settings: ProveSettings,
    *,
    head: str,
    asked: int,
    ended: Ended,
    seconds: float,
    install: str,
) -> Calibration:
    """Sum up what the proofs say; `install` is the command that installs what the project needs, if it names one."""
    commits = tuple(commit for commit, _ in proofs)
    cost = _cost(commits, seconds)
    flaky = tuple(dict.fromkeys(name for commit in commits for name in commit.flaky))
    results = [commit.result for commit in commits]
    return Calibration(
        head=head,
        checks=tuple(
            CalibratedCheck(name=check.name, command=check.command)
            for check in settings.checks_at("end")
        ),
        asked=asked,
        ended=ended,
        proven=results.count("proven"),
        review=results.count("review"),
        refuted=results.count("refuted"),
        unverifiable=results.count("unverifiable"),
        commits=commits,
        flaky=flaky[:MOST_NAMES],
        leaks=tuple(dict.fromkeys(one.detail for one in commits if one.reason == "shared_code")),
        cost=cost,
        proposals=tuple(propose_settings(commits, cost, settings, install)),
        notes=tuple(dict.fromkeys(_notes(proofs, commits, settings))),
    )


def _cost(commits: Sequence[CalibratedCommit], seconds: float) -> CalibrationCost:
    singles = [commit.single_run_seconds for commit in commits if commit.single_run_seconds]
    timed = [commit for commit in commits if commit.single_run_seconds]
    return CalibrationCost(
        seconds=round(seconds, 3),
        run_seconds=round(median(singles), 3) if singles else 0.0,
        longest_seconds=max(singles, default=0.0),
        ratio=round(sum(one.seconds for one in timed) / sum(singles), 3) if singles else None,
        runs=sum(commit.runs for commit in commits),
    )


def propose_settings(
    commits: Sequence[CalibratedCommit],
    cost: CalibrationCost,
    settings: ProveSettings,
    install: str,
) -> Iterator[SettingProposal]:
    """Yield the settings under which the replayed commits would have been judged better, or sooner."""
    reasons = [commit.reason for commit in commits]
    late = reasons.count("timeout") + reasons.count("hangs")
    if late:
        yield _proposal(
            "timeout_seconds",
            f"{2 * settings.timeout_seconds:g}",
            f"{plural(late, 'commit')} had a run that took longer than {settings.timeout_seconds:g} s",
        )
    elif 0 < cost.longest_seconds * _ROOMY < settings.timeout_seconds > _LEAST_TIMEOUT:
        enough = max(_LEAST_TIMEOUT, -(-int(cost.longest_seconds * _ROOM + 1) // 10) * 10)
        why = f"the longest run took {cost.longest_seconds:.1f} s; a hang is found sooner"
        yield _proposal("timeout_seconds", str(enough), why)
    flaky = {name for commit in commits for name in commit.flaky}
    if flaky and settings.reruns < _MOST_RERUNS:
        why = f"{plural(len(flaky), 'test')} passed and failed on the same code"
        yield _proposal("reruns", str(_MOST_RERUNS), why)
    if "shared_code" in reasons and settings.share:
        why = "what is shared leads back to the work tree; let a set-up command install it"
        yield _proposal("share", "[]", why)
    missing = sum(reason in _NOT_INSTALLED for reason in reasons)
    if missing and install and not settings.setup:
        why = f"{plural(missing, 'commit')} could not be judged with what is installed here"
        yield _proposal("setup", json.dumps(install), why)
    judged = not any(commit.result == "unverifiable" for commit in commits)
    if judged and len(commits) >= _ENOUGH_COMMITS and not settings.required:
        yield _proposal("required", "true", f"each of {plural(len(commits), 'commit')} was judged")


def _proposal(key: str, value: str, why: str) -> SettingProposal:
    return SettingProposal(key=f"prove.{key}", value=fit_line(value), why=fit_line(why))


def _notes(
    proofs: Sequence[tuple[CalibratedCommit, Proof]],
    commits: Sequence[CalibratedCommit],
    settings: ProveSettings,
) -> Iterator[str]:
    for _, proof in proofs:
        yield from proof.notes
    after = [proof.cells["after"] for _, proof in proofs if "after" in proof.cells]
    by_exit = [cell for cell in after if cell.granularity == "exit"]
    if by_exit and not settings.junit and any(c.kind == "tests" for c in settings.checks_at("end")):
        yield (
            "guard knows no single tests of the command, only its exit code; "
            "prove.junit can name the JUnit files that it writes"
        )
    reviews = [commit for commit in commits if commit.result == "review"]
    if len(commits) >= _ENOUGH_COMMITS and len(reviews) > _MANY_REVIEWS * len(commits):
        yield (
            f"{len(reviews)} of {len(commits)} commits would have needed a review; "
            "prove.allow_test_changes names the test files that may be rewritten without one"
        )
    red = sum(commit.reason == "red_before" for commit in commits)
    if red:
        yield f"{plural(red, 'commit')} could not be judged because the baseline was red, too"


def calibration_lines(report: Calibration) -> Iterator[str]:
    """Say for people what the calibration showed."""
    done, counts = len(report.commits), ("proven", "review", "refuted", "unverifiable")
    said = ", ".join(f"{getattr(report, name)} {name}" for name in counts)
    yield f"{done} of {plural(report.asked, 'commit')}: {said}"
    yield from _WHY_NOT_ALL[report.ended]
    for result in ("refuted", "unverifiable", "review"):
        found = [commit for commit in report.commits if commit.result == result]
        for commit in found[: _MOST_SHOWN * 2]:
            yield f"  {result}: {commit.commit[:12]} {commit.subject}"
            yield f"    {commit.reason}: {commit.detail}"
            yield from _named(commit)
            if result != "review":
                yield from (f"    | {line}" for line in commit.tail.splitlines()[-_MOST_TAIL:])
        if len(found) > _MOST_SHOWN * 2:
            yield f"  {result}: and {plural(len(found) - _MOST_SHOWN * 2, 'more commit')}"
    yield from (f"  passes and fails on the same code: {name}" for name in report.flaky)
    yield from (f"  leak: {leak}" for leak in report.leaks)
    yield f"  cost: {_describe_cost(report.cost)}"
    yield from (f"  note: {note}" for note in report.notes)
    for one in report.proposals:
        yield f"  proposed: {one.key} = {one.value} ({one.why})"


_WHY_NOT_ALL: dict[Ended, tuple[str, ...]] = {
    "complete": (),
    "history": ("  there are no more commits here that have a parent",),
    "max_time": ("  the time was over; --max-time SECONDS gives more",),
    "interrupted": ("  interrupted",),
}


def _named(commit: CalibratedCommit) -> Iterator[str]:
    for said, names in (
        ("fails now", commit.new_failures),
        ("removed or skipped, and fails as it was", commit.weakened),
        ("rewritten, and fails as it was", commit.rewritten),
    ):
        yield from (f"    {said}: {name}" for name in names[:_MOST_SHOWN])
        if len(names) > _MOST_SHOWN:
            yield f"    {said}: and {plural(len(names) - _MOST_SHOWN, 'more test')}"


def _describe_cost(cost: CalibrationCost) -> str:
    if cost.ratio is None:
        return f"{cost.seconds:.1f} s"
    return (
        f"{cost.ratio:.2f} x one run of the command ({cost.run_seconds:.1f} s); "
        f"{plural(cost.runs, 'run')}, {cost.seconds:.1f} s in all"
    )
