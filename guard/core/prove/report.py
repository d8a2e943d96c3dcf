"""The document `guard/proof/1`: what was run, what it showed, and what follows from it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from guard.core.base.fields import Count, Frozen, Id, Line, Oid, Report, Text
from guard.core.base.first_use import dataclass
from guard.core.base.text import escape, fit_line, plural
from guard.core.iteration.facts import Seconds
from guard.core.prove.judge_work import ProofJudgement
from guard.core.prove.outcome import CellName, CellRun, Granularity
from guard.core.prove.settings import ProveCheck
from guard.core.prove.summary import ProofResult, ProofSummary

MOST_NAMES = 200
_MOST_TAIL = 8000
_MOST_FEEDBACK_NAMES = 20
_MOST_FEEDBACK_LINES = 40
TestName = Annotated[str, StringConstraints(max_length=1024)]
Names = tuple[TestName, ...]


class Cell(Frozen):
    """What one cell showed; of a cell that was run for several questions the counts are of all its tests."""

    ran: Count
    """How many times the command was run for it."""
    cached: bool
    exit_code: int | None
    seconds: Seconds
    collected: Count
    passed: Count
    failed: Count
    skipped: Count
    granularity: Granularity


class CheckProof(Frozen):
    """What one check says of the work."""

    name: Id
    command: str
    kind: Literal["tests", "exit"]
    result: ProofResult | None
    """None if it was not run, because the change touches none of its paths."""
    reason: Line
    detail: Line
    baseline: Oid | None
    tests_baseline: Oid | None
    cells: dict[CellName, Cell]
    seconds: Seconds


class Proof(ProofSummary):
    """Whether committed work passes the project's own checks, and those that were there before."""

    check: Id | None
    """The check that decided; null if none was run."""
    command: str
    """Its command."""
    baseline: Oid | None
    """The commit that failures are held against."""
    tests_baseline: Oid | None
    """The commit that removed and rewritten tests are held against: where the run began, or what a person accepted since."""
    head: Oid
    head_tree: Oid
    cells: dict[CellName, Cell]
    """The runs of the check that decided."""
    checks: tuple[CheckProof, ...]
    new_failures: Names
    still_failing: Names
    fixed: Names
    vanished: Names
    newly_skipped: Names
    weakened: Names
    rewritten: Names
    vacuous: Names
    flaky: Names
    changed_test_files: Names
    notes: tuple[str, ...]
    """What a reader should know of the checkouts: a submodule that is not here, LFS files that are pointers."""
    tail: Text
    seconds: Seconds


class ProofReport(Proof, Report):
    """What `guard prove` prints."""

    schema_: Literal["guard/proof/1"] = Field("guard/proof/1", alias="schema")


def feedback(proof: Proof) -> str:
    """Return what the next prompt says of work that was refuted: the names, and the last lines of what failed."""
    found = {"fails now": proof.new_failures, "was removed, skipped or weakened": proof.weakened}
    found["was rewritten, and fails as it was"] = proof.rewritten
    lines = [f"The committed work does not pass the project's own checks: {proof.detail}."]
    for said, names in found.items():
        lines += [f"- {said}: {fit_line(name)}" for name in names[:_MOST_FEEDBACK_NAMES]]
        if len(names) > _MOST_FEEDBACK_NAMES:
            lines.append(f"- {said}: {plural(len(names) - _MOST_FEEDBACK_NAMES, 'more test')}")
    tail = proof.tail.splitlines()[-_MOST_FEEDBACK_LINES:]
    lines += ["The last lines of what failed:", *(f"    {line}" for line in tail)] if tail else []
    lines.append("Repair the code; do not remove, skip or weaken tests. This shows it:")
    return "\n".join([*lines, f"    {escape(proof.command)}"])


EXIT_OF_PROOF: dict[str, int] = {"proven": 0, "review": 0, "refuted": 17, "unverifiable": 1}


@dataclass(frozen=True)
class CheckRun:
    """What one check showed; `judgement` is None if it was not run."""

    check: ProveCheck
    judgement: ProofJudgement | None
    baseline: str | None
    tests_baseline: str | None
    cells: Mapping[CellName, Cell]
    seconds: float


_NOT_RUN = "not_run"
_RANKS = ("refuted", "unverifiable", "review", "proven")


def _rank(found: ProofJudgement | ProofSummary) -> tuple[int, bool]:
    """Return how bad a result is, the worst first.

    What could not be judged outweighs what needs a review, because after the review it would still be open; a hang outweighs
    what could not be judged otherwise, because it is never complete.
    """
    return _RANKS.index(found.result), found.reason != "hangs"


def is_worse(one: ProofSummary, other: ProofSummary) -> bool:
    return _rank(one) < _rank(other)


def make_proof(
    runs: Sequence[CheckRun],
    *,
    head: str,
    head_tree: str,
    changed_test_files: Iterable[str],
    notes: Iterable[str],
    seconds: float,
) -> Proof:
    """Combine what the checks say: the worst decides, and the names of all are told."""
    found = [(run, run.judgement) for run in runs if run.judgement is not None]
    found.sort(key=lambda each: _rank(each[1]))
    judgements = [judgement for _, judgement in found]
    worst = judgements[0] if judgements else _NO_CHECK
    first = found[0][0] if found else None
    lists = {
        name: _names(
            tuple(dict.fromkeys(one for each in judgements for one in getattr(each, name)))
        )
        for name, value in vars(_NO_CHECK).items()
        if isinstance(value, tuple)
    }
    summary = summarise(worst, first.check.name if first is not None and len(found) > 1 else None)
    return Proof.model_validate(
        {
            **dict(summary),
            "check": first.check.name if first is not None else None,
            "command": first.check.command if first is not None else "",
            "baseline": first.baseline if first is not None else None,
            "tests_baseline": first.tests_baseline if first is not None else None,
            "head": head,
            "head_tree": head_tree,
            "cells": dict(first.cells) if first is not None else {},
            "checks": tuple(_check_proof(run) for run in runs),
            "changed_test_files": _names(tuple(sorted(set(changed_test_files)))),
            "notes": tuple(fit_line(escape(note)) for note in dict.fromkeys(notes)),
            "tail": _tail(worst.tail),
            "seconds": round(seconds, 3),
            **lists,
        }
    )


_NO_CHECK = ProofJudgement("unverifiable", "no_check", "no check is for the files that changed")


def summarise(judgement: ProofJudgement, check: str | None) -> ProofSummary:
    named = f"{check}: " if check is not None else ""
    return ProofSummary(
        result=judgement.result,
        reason=judgement.reason,
        detail=fit_line(escape(named + judgement.detail)),
    )


def _check_proof(run: CheckRun) -> CheckProof:
    judgement = run.judgement
    said = summarise(judgement, None) if judgement is not None else None
    return CheckProof(
        name=run.check.name,
        command=run.check.command,
        kind=run.check.kind,
        result=said.result if said is not None else None,
        reason=said.reason if said is not None else _NOT_RUN,
        detail=said.detail if said is not None else "the change touches none of its paths",
        baseline=run.baseline,
        tests_baseline=run.tests_baseline,
        cells=dict(run.cells),
        seconds=round(run.seconds, 3),
    )


def _names(names: tuple[str, ...]) -> Names:
    """Return the names, safe to print; of very many, the first and how many more."""
    shown = tuple(escape(name)[:1024] for name in names[:MOST_NAMES])
    more = len(names) - len(shown)
    return (*shown, f"and {more:,} more") if more > 0 else shown


def _tail(text: str) -> str:
    lines = text[-_MOST_TAIL:].splitlines()
    return "\n".join(escape(line) for line in lines)[-_MOST_TAIL:]


def add_run(cell: Cell | None, run: CellRun) -> Cell:
    """Count a run to its cell."""
    seconds = round((cell.seconds if cell else 0.0) + run.seconds, 3)
    ran = (cell.ran if cell else 0) + (0 if run.cached else 1)
    if cell is not None and cell.collected > len(run.tests):
        return cell.model_copy(update={"ran": ran, "seconds": seconds})
    states = [test.state for test in run.tests.values()]
    return Cell(
        ran=ran,
        cached=run.cached if cell is None else cell.cached and run.cached,
        exit_code=run.exit_code,
        seconds=seconds,
        collected=len(states),
        passed=states.count("passed"),
        failed=states.count("failed"),
        skipped=states.count("skipped"),
        granularity=run.granularity,
    )


class CheckPlan(Frozen):
    """What one check is held against, which file is which to it, and what would be run."""

    name: Id
    command: str
    kind: Literal["tests", "exit"]
    is_concerned: bool
    """Whether it would be run: the change touches its paths."""
    baseline: Oid | None
    tests_baseline: Oid | None
    changed_tests: tuple[str, ...]
    new_tests: tuple[str, ...]
    other_tests: tuple[str, ...]
    steering: tuple[str, ...]
    dependencies: tuple[str, ...]
    code: tuple[str, ...]
    would_run: tuple[str, ...]


class ProofPlan(Report):
    """What `guard prove --explain` prints: which file is which, and what would be run."""

    schema_: Literal["guard/proof-plan/1"] = Field("guard/proof-plan/1", alias="schema")
    head: Oid
    checks: tuple[CheckPlan, ...]


class AcceptReport(Report):
    """What `guard prove --accept` prints: the commit up to which changes of tests are accepted."""

    schema_: Literal["guard/proof-accepted/1"] = Field("guard/proof-accepted/1", alias="schema")
    head: Oid
    result: ProofResult | None
    """What the newest proof said of the commit; null if there is none."""
    weakened: Names
    rewritten: Names
