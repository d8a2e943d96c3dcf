"""Prove the merged tree by the project's own checks, where there are any."""

from dataclasses import dataclass
from typing import Literal

from guard.context.invocation import Invocation
from guard.core.prove.events import TestChangesAccepted
from guard.core.prove.report import ProofReport
from guard.landing.chain import CommitChain

_MOST_NAMED = 20
_MOST_TAIL = 4000


@dataclass(frozen=True)
class LandingProof:
    """What the checks say of the commits; `none` where nothing is to be proven."""

    result: Literal["none", "proven", "refuted", "review", "unverifiable"]
    detail: str = ""

    @property
    def lands(self) -> bool:
        return self.result in ("none", "proven")


def prove_chain(guard: Invocation, chain: CommitChain) -> LandingProof:
    """Run the checks on the last of the commits, held against the target's tip."""
    settings = guard.config.settings.prove
    if not settings.checks_at("end"):
        return LandingProof("none")
    # The room of proof is large, and most landings of a small plan need none of it.
    from guard.prove.prove import prove
    from guard.prove.work import ProveTerms

    allows = all(work.may_change_tests for work in chain.works)
    flags = {"prove.allow_test_changes": True} if allows else {}
    terms = ProveTerms(baseline=chain.head, head=chain.to_sha, moment="end", flags=flags)
    report = prove(guard, terms)
    if report.result == "review" and len(chain.works) == 1:
        tip = chain.works[0].tip
        if _is_accepted(guard, tip):
            return LandingProof("proven")
        names = ", ".join(report.rewritten[:_MOST_NAMED]) or report.detail
        words = f"rewritten tests: {names}\naccept them with `guard prove --accept {tip[:12]}`"
        return LandingProof("review", words)
    if report.result == "unverifiable" and not settings.required:
        guard.output.warn(f"what lands is not proven: {report.detail}")
        return LandingProof("none", report.detail)
    return LandingProof(report.result, _refutation(report))


def _refutation(report: ProofReport) -> str:
    lines = [report.detail or report.reason]
    failures = (*report.new_failures, *report.weakened)
    if failures:
        lines.append("fails: " + ", ".join(failures[:_MOST_NAMED]))
    if report.tail:
        lines.append(report.tail[-_MOST_TAIL:])
    return "\n".join(lines)


def _is_accepted(guard: Invocation, tip: str) -> bool:
    """Tell whether a person has accepted the changes of tests up to the task's last commit, in any work tree."""
    return any(
        isinstance(entry.event, TestChangesAccepted) and entry.event.head == tip
        for entry in guard.store.entries()
    )
