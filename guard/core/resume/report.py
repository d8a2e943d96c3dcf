"""The report of `guard resume`, as a document and as text."""

from typing import Literal

from pydantic import Field

from guard.core.activity.events import ResumeWay
from guard.core.agents.events import AgentStatus
from guard.core.base.fields import Count, Id, Instant, Line, Report, Text
from guard.core.base.text import escape
from guard.core.plan.model import PlanTask

Outcome = Literal[
    "written", "sent", "active", "ended", "limited", "paused", "spent", "undeliverable", "failed"
]
EXIT_CODES: dict[Outcome, int] = {"written": 0, "sent": 0, "limited": 13, "spent": 14}
"""Every other outcome is a refusal and exits with 1."""


class ResumeReport(Report):
    """The outcome of one attempt to bring an agent back."""

    schema_: Literal["guard/resume/1"] = Field("guard/resume/1", alias="schema")
    at: Instant
    task_id: Id
    agent_id: Id
    status: AgentStatus
    outcome: Outcome
    reason: Line
    """Why the prompt was written or sent, or why not."""
    prompt: Text | None
    way: ResumeWay | None
    """The channel by which it was sent."""
    sent_in_stall: Count
    """How many prompts were sent to the agent in this silence, including this one."""
    max_per_stall: Count
    """How many prompts may be sent in one silence."""
    next_task: PlanTask | None
    claimed: bool
    """Whether that task is now claimed for the agent."""
    retry_at: Instant | None

    @property
    def exit_code(self) -> int:
        return EXIT_CODES.get(self.outcome, 1)


def resume_text(report: ResumeReport) -> str:
    """The prompt if it was only written, else one line."""
    if report.outcome == "written" and report.prompt is not None:
        return report.prompt.rstrip("\n")
    return resume_line(report)


def resume_line(report: ResumeReport) -> str:
    by = f" by {report.way}" if report.way is not None else ""
    return escape(
        f"{report.agent_id} of {report.task_id} ({report.status}): {report.outcome}{by}: {report.reason}"
    )
