"""Judge again: one evidence document under a policy, or the looks of a past check under other settings."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from guard.core.base.fields import Count, Frozen, Instant, Report, first_problem
from guard.core.base.json_text import loads
from guard.core.check.events import CheckMade
from guard.core.check.evidence import Evidence, Policy
from guard.core.check.judge import Ruling, Verdict, hold_against_proof, judge, settle
from guard.core.iteration.facts import Seconds, Status

M = TypeVar("M", bound=Frozen)


class JudgeReport(Report):
    """A decision, explained."""

    schema_: Literal["guard/judge/1"] = Field("guard/judge/1", alias="schema")
    decision: Literal["verdict", "probe", "wait", "rescue"]
    status: Status | None
    """The verdict, if it is one; else the decision is the step that finds out more."""
    reason: str | None
    detail: str
    retry_at: Instant | None
    seconds: Seconds
    """How long the step waits at most."""
    trail: tuple[str, ...]
    """The rules that were asked, in their order; the last one decided."""
    look: Count
    """Which look of the check was judged, counted from 1; a document of its own is look 1 of 1."""
    looks: Count
    recorded_status: Status | None
    """What the check itself said at the time."""
    recorded_reason: str | None
    policy: Policy


def read_evidence(data: bytes) -> Evidence:
    """Read an evidence document; a ValueError names the place that does not fit."""
    return _read(Evidence, loads(data))


def _read(model: type[M], document: object) -> M:
    # Strict, as the schema has it: a number in quotes is no number.
    try:
        return model.model_validate_json(json.dumps(document))
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def apply_settings(policy: Policy, settings: Sequence[str]) -> Policy:
    """Return the policy with `name=value` settings in it; a ValueError names the one that does not fit."""
    values: dict[str, Any] = policy.model_dump()
    for pair in settings:
        name, equals, value = pair.partition("=")
        name = name.removeprefix("completion_check.")
        if not equals or name not in values:
            raise ValueError(f"{pair!r} is not NAME=VALUE with a name of {', '.join(values)}")
        values[name] = value
    try:
        return Policy.model_validate(values, strict=False)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def explain(evidence: Evidence, policy: Policy) -> JudgeReport:
    return _report(judge(evidence, policy), policy, 1, 1, None)


def replay_check(made: CheckMade, settings: Sequence[str]) -> JudgeReport:
    """Judge the looks of a past check under other settings: the first verdict, or the step where its evidence ends."""
    policy = apply_settings(_read(Policy, made.policy), settings)
    looks = [_read(Evidence, look) for look in made.looks]
    if not looks:
        raise ValueError("the check kept no evidence")
    for number, look in enumerate(looks, 1):
        ruling = judge(look, policy)
        if isinstance(ruling.decision, Verdict):
            # The final rescue follows a verdict, and the look after it is the last one.
            after = looks[-1] if policy.final_rescue_attempt and number == len(looks) - 1 else look
            settled = hold_against_proof(settle(ruling.decision, after), made.proof, policy)
            ruling = replace(ruling, decision=settled)
            return _report(ruling, policy, number, len(looks), made)
    return _report(ruling, policy, len(looks), len(looks), made)


def _report(
    ruling: Ruling, policy: Policy, look: int, looks: int, made: CheckMade | None
) -> JudgeReport:
    decision = ruling.decision
    verdict, step = (decision, None) if isinstance(decision, Verdict) else (None, decision)
    return JudgeReport(
        decision=step.action if step else "verdict",
        status=verdict.status if verdict else None,
        reason=verdict.reason if verdict else None,
        detail=decision.detail,
        retry_at=verdict.retry_at if verdict else None,
        seconds=step.seconds if step else 0,
        trail=ruling.trail,
        look=look,
        looks=looks,
        recorded_status=made.status if made else None,
        recorded_reason=made.reason if made else None,
        policy=policy,
    )
