"""The state of the repository when an agent was spawned; a claim of completion is measured from it."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from pydantic import Field

from guard.core.agents.events import AgentBaselineRecorded, Incarnation
from guard.core.base.fields import Id, Instant, Oid
from guard.core.base.paths import Spelled
from guard.core.iteration.events import DirtyFile
from guard.core.log.view import FieldsFold, ViewDocument, ViewKind

_OWN = ("task_id", "agent_id", "incarnation", "at", "root", "head", "dirty")


@dataclass(frozen=True)
class Ground:
    """The state of a work tree when an agent was spawned in it."""

    root: str
    """Spelled."""
    head: str | None
    """None before the first commit."""
    dirty: tuple[DirtyFile, ...]


class AgentBaseline(ViewDocument):
    """The baseline of an agent's newest incarnation that has one."""

    schema_: Literal["guard/agent-baseline/1"] = Field("guard/agent-baseline/1", alias="schema")
    task_id: Id
    agent_id: Id
    incarnation: Incarnation
    at: Instant
    root: Spelled
    head: Oid | None
    dirty: tuple[DirtyFile, ...]

    @property
    def ground(self) -> Ground:
        return Ground(self.root, self.head, self.dirty)

    def key(self) -> str:
        return baseline_key(self.task_id, self.agent_id)


class AgentBaselineFold(FieldsFold[AgentBaseline]):
    document_class = AgentBaseline

    def apply(self, event: AgentBaselineRecorded) -> None:
        self._fields = {name: getattr(event, name) for name in _OWN}


def baseline_key(task_id: str, agent_id: str) -> str:
    """Return one id for a task and an agent."""
    return sha256(f"{task_id}/{agent_id}".encode()).hexdigest()[:32]


AGENT_BASELINE: ViewKind[AgentBaseline, AgentBaselineFold] = ViewKind(
    document=AgentBaseline,
    fold=AgentBaselineFold,
    events=(AgentBaselineRecorded,),
    key=lambda event: baseline_key(event.task_id, event.agent_id),
    folder="agents.d/",
    file="/agent-baseline.json",
    needles=lambda _key: (b'"type":"agent_baseline_recorded"',),
)
