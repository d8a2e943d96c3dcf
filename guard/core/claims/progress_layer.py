"""The fourth layer: how the work went by time and by the agent's own reports."""

from collections.abc import Iterator
from typing import Literal

from guard.core.base.text import plural
from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.policy import ClaimPolicy
from guard.core.claims.scoring import FAILED, Deduction, score_lines, warned
from guard.core.events.validation import ProgressPattern

Speed = Literal["reasonable", "fast", "implausible"]

_IMPLAUSIBLE_SECONDS = 5
_FAST, _FEW, _NEVER_WORKING = -0.15, -0.15, -0.05


def progress_layer(
    evidence: ClaimEvidence, policy: ClaimPolicy
) -> tuple[ProgressPattern, list[Deduction]]:
    """How long it took, and how often the agent reported."""
    elapsed = (evidence.at - evidence.spawned_at).total_seconds()
    speed = _speed(elapsed, evidence, policy)
    deductions = [*_of_time(speed, elapsed, policy), *_of_updates(evidence, policy)]
    layer = ProgressPattern(
        score=score_lines(deductions),
        speed=speed,
        elapsed_seconds=max(0.0, elapsed),
        updates_count=evidence.updates,
        working_updates_count=evidence.working_updates,
    )
    return layer, deductions


def _speed(elapsed: float, evidence: ClaimEvidence, policy: ClaimPolicy) -> Speed:
    """A clock that ran backwards tells nothing, and so accuses nobody."""
    files = len(evidence.changes.files) if evidence.changes else 0
    if elapsed < 0 or elapsed >= policy.min_seconds:
        return "reasonable"
    return "implausible" if elapsed < max(_IMPLAUSIBLE_SECONDS, files) else "fast"


def _of_time(speed: Speed, elapsed: float, policy: ClaimPolicy) -> Iterator[Deduction]:
    if speed != "reasonable":
        least = f"expected at least {policy.min_seconds:g} s"
        yield warned(
            FAILED if speed == "implausible" else _FAST, f"Took only {elapsed:.1f} s - {least}"
        )


def _of_updates(evidence: ClaimEvidence, policy: ClaimPolicy) -> Iterator[Deduction]:
    if evidence.updates < policy.min_updates:
        told = plural(evidence.updates, "progress update")
        yield warned(_FEW, f"Only {told} - expected at least {policy.min_updates}")
    if evidence.updates and not evidence.working_updates and policy.min_updates:
        yield warned(_NEVER_WORKING, "No update said that it was at work")
