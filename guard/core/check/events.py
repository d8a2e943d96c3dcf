"""The events of a completion check: its verdict, every look at the evidence that led to it, and what it warned of."""

from typing import Any, Literal

from guard.core.base.fields import Count, Frozen, Instant, Line, Oid, Text
from guard.core.base.paths import Spelled
from guard.core.cost.usage import Usage
from guard.core.iteration.events import IterationEventBase
from guard.core.iteration.facts import DirtyFile, Seconds, Status
from guard.core.prove.summary import ProofSummary
from guard.core.snapshots.snapshot import HeldBack

MOST_LOOKS = 32


class CheckMade(IterationEventBase):
    """One completion check. The looks are evidence documents (`guard/evidence/1`): a replay judges them again."""

    type: Literal["check_made"] = "check_made"
    status: Status
    reason: Line
    detail: Line
    complete: bool
    new_commits: Count
    uncommitted: Count
    rescued: bool
    rescued_commits: Count
    probes: Count
    probe_cost_usd: float | None
    alive: Count
    """How many processes and members were alive and at work when the verdict fell."""
    retry_at: Instant | None
    elapsed_seconds: Seconds
    supervised: bool = False
    """Whether it was made by the guard that watches over the iteration, and not by hand."""
    left: tuple[DirtyFile, ...]
    """What the iteration left uncommitted, so that the next baseline does not take it for the user's."""
    aside: tuple[Spelled, ...] = ()
    """What changed while no guard watched: the user's, for all checks of this iteration."""
    proof: ProofSummary | None = None
    """What the project's own checks proved of it; None if they were not run."""
    usage: Usage | None = None
    """What the iteration used; of several checks of an iteration each has the whole."""
    policy: dict[str, Any]
    looks: tuple[dict[str, Any], ...]


class CommittedSecret(Frozen):
    """A secret that the agent committed; its value is shown nowhere."""

    path: Line
    rule: Line
    """The kind of secret; `sensitive_name` for a new file that is made for secrets, such as `.env`."""
    commit: Oid
    """The first commit of the iteration that has it; a later one may have removed it from the file, not from the history."""
    line: Count | None
    """Null where the name of the file is the finding."""


class CheckWarned(IterationEventBase):
    """What the next agent and the user have to know of a check; it follows the check in the same change."""

    type: Literal["check_warned"] = "check_warned"
    secrets: tuple[CommittedSecret, ...]
    not_scanned: tuple[Line, ...]
    """Files of the agent's commits that were not searched for secrets, and why."""
    held_back: tuple[HeldBack, ...]
    """What the rescue of the check did not commit, and why."""


CheckEvent = CheckMade | CheckWarned


class QuestionAnswered(IterationEventBase):
    """A person has answered the question that the iteration ended with; the loop's next prompt has the answer."""

    type: Literal["question_answered"] = "question_answered"
    question: Text
    answer: Text
