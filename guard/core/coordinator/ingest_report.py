"""What `guard plan ingest` prints."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Line
from guard.core.base.report import Report
from guard.core.base.text import plural, visible
from guard.core.plan.signals import SignalKind

Heard = Literal["recorded", "repeated", "refused", "for_a_person"]


class IngestedSignal(Frozen):
    """One signal, and what came of it."""

    kind: SignalKind
    line: Count
    task: Line
    """As the agent spelled it."""
    outcome: Heard
    detail: Line
    events: tuple[Line, ...]


class PlanIngestReport(Report):
    """What an agent's output told the coordinator."""

    schema_: Literal["guard/plan-ingest/1"] = Field("guard/plan-ingest/1", alias="schema")
    agent_id: Id
    signals: tuple[IngestedSignal, ...]
    refused: Count


def ingest_text(report: PlanIngestReport) -> str:
    """For people, a line for each signal."""
    if not report.signals:
        return f"{report.agent_id} gave no signal"
    lines = [f"{report.agent_id} gave {plural(len(report.signals), 'signal')}"]
    lines += [
        f"line {one.line}: {one.kind}{visible(f' of {one.task}' if one.task else '')}: "
        f"{one.outcome.replace('_', ' ')}{visible(f', {one.detail}' if one.detail else '')}"
        for one in report.signals
    ]
    return "\n".join(lines)
