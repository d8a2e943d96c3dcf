"""The state of the repository when an agent was spawned; a claim of completion is measured from it."""

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from pydantic import Field

from guard.core.agents.events import AgentBaselineRecorded
from guard.core.base.fields import Count, Digest, Id, Incarnation, Instant, Oid
from guard.core.base.first_use import dataclass
from guard.core.base.paths import Spelled
from guard.core.iteration.baseline import EMPTY, Baseline
from guard.core.iteration.facts import DirtyFile
from guard.core.log.view import FieldsFold, ViewDocument, ViewKind

STANDING = (
    *("head", "dirty", "tree", "branch", "refs", "refs_omitted", "stash", "shallow", "reflogs"),
)
"""The fields that say where the repository stood."""
_OWN = ("task_id", "agent_id", "incarnation", "at", "root", *STANDING)
_UNRECORDED = "unrecorded"


@dataclass(frozen=True)
class Ground:
    """The work tree in which an agent was spawned, and where its repository stood."""

    root: str
    """Spelled."""
    baseline: Baseline

    @classmethod
    def of(cls, root: str, standing: Mapping[str, Any], at: datetime | None = None) -> "Ground":
        """Make it from the fields that say where the repository stood."""
        # Without refs, as an older guard recorded it, only HEAD can be compared.
        revision = standing["head"] or EMPTY if standing["refs"] is None else None
        baseline = Baseline(
            run=_UNRECORDED,
            iteration=1,
            at=at,
            baseline=_UNRECORDED,
            revision=revision,
            pin=None,
            pinned=None,
            warnings=(),
            **{**standing, "refs": standing["refs"] or {}},
        )
        return cls(root, baseline)

    @property
    def head(self) -> str | None:
        return self.baseline.head

    @property
    def dirty(self) -> tuple[DirtyFile, ...]:
        return self.baseline.dirty


class AgentBaseline(ViewDocument):
    """The baseline of an agent's newest incarnation that has one."""

    schema_: Literal["guard/agent-baseline/2"] = Field("guard/agent-baseline/2", alias="schema")
    task_id: Id
    agent_id: Id
    incarnation: Incarnation
    at: Instant
    root: Spelled
    head: Oid | None
    dirty: tuple[DirtyFile, ...]
    tree: Oid | None
    branch: Spelled | None
    refs: dict[Spelled, Oid] | None
    refs_omitted: Count
    stash: tuple[Oid, ...]
    shallow: Digest | None
    reflogs: dict[Spelled, Count]

    @property
    def ground(self) -> Ground:
        return Ground.of(self.root, {name: getattr(self, name) for name in STANDING}, self.at)

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
