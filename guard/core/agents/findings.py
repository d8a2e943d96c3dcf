"""The view of a task's findings: the newest ones, and their number."""

from typing import Any, Literal

from pydantic import Field

from guard.core.agents.events import AgentFindingRecorded, Severity
from guard.core.base.fields import Count, Frozen, Id, Incarnation, Instant, Text
from guard.core.base.paths import Spelled
from guard.core.log.view import Fold, ViewDocument, ViewKind

MOST_FINDINGS = 1000


class FoundOut(Frozen):
    """One finding of one agent."""

    at: Instant
    agent_id: Id
    incarnation: Incarnation
    severity: Severity
    file: Spelled | None
    text: Text


class Findings(ViewDocument):
    """The findings of a task, the oldest first."""

    schema_: Literal["guard/findings/1"] = Field("guard/findings/1", alias="schema")
    task_id: Id
    total: Count
    findings: tuple[FoundOut, ...]

    def key(self) -> str:
        return self.task_id


class FindingsFold(Fold[Findings]):
    document_class = Findings

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._total = 0
        self._findings: list[FoundOut] = []

    def restore(self, document: Findings) -> None:
        self.reached = document.position()
        self._total, self._findings = document.total, list(document.findings)

    def apply(self, event: AgentFindingRecorded) -> None:
        fields = {name: getattr(event, name) for name in FoundOut.model_fields}
        self._total += 1
        self._findings.append(FoundOut(**fields))
        del self._findings[:-MOST_FINDINGS]

    def contents(self) -> dict[str, Any]:
        return {"task_id": self.key, "total": self._total, "findings": tuple(self._findings)}


FINDINGS: ViewKind[Findings, FindingsFold] = ViewKind(
    document=Findings,
    fold=FindingsFold,
    events=(AgentFindingRecorded,),
    key=lambda event: event.task_id,
    folder="",
    file="/FINDINGS.json",
    needles=lambda _key: (b'"type":"agent_finding_recorded"',),
)
