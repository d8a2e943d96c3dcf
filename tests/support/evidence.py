"""Evidence made short: a look at an iteration in which nothing happened, and what may be different in it."""

from typing import Any, Literal

from guard.core.check.evidence import Evidence, Living, TeamEvidence
from guard.core.classify import Classification, Outcome
from guard.core.probe.answer import LASTING, Answer, ProbeFailure, ProbeResult
from guard.core.snapshots.snapshot import Rescue, Snapshot
from guard.core.work.count import Work
from guard.core.work.leftovers import Uncommitted
from tests.support.events import MOMENT

OID = "1" * 40
COMMITTED = Work(new_commits=2, net_change=True)
LEFT = Uncommitted(unstaged=("src/app.py",), untracked=("src/new.py",))
USERS = Uncommitted(users=3)
TEAM = TeamEvidence(name="builders", active=1)


def look(**different: Any) -> Evidence:
    """The agent was seen to end, and there is one to ask."""
    plain = {"at": MOMENT, "work": Work(), "uncommitted": Uncommitted()}
    return Evidence(**{**plain, "agent_ended": True, "can_ask": True, **different})


def said(outcome: Outcome = "ok", **different: Any) -> Classification:
    """What the agent's output means."""
    plain = {
        "outcome": outcome,
        "reason": outcome,
        "retry_at": None,
        "session": "session-1",
        "killed": (),
        "exit_code": 0,
        "fingerprint": None,
        "claim": None,
        "cost_usd": None,
        "denied_tools": (),
    }
    return Classification(**{**plain, **different})


def _probed(**different: Any) -> ProbeResult:
    plain = {
        "answer": None,
        "failure": None,
        "lasting": False,
        "detail": "",
        "retry_at": None,
        "agent": "claude",
        "session": "session-1",
        "elapsed_seconds": 2.0,
        "cost_usd": None,
        "tokens": None,
    }
    return ProbeResult(**{**plain, **different})


def answered(status: Literal["complete", "waiting", "working"], **fields: Any) -> ProbeResult:
    """A probe that the session answered."""
    return _probed(answer=Answer(status=status, **fields), detail=f"says {status}")


def failed(failure: ProbeFailure, **different: Any) -> ProbeResult:
    """A probe without an answer."""
    return _probed(failure=failure, lasting=failure in LASTING, detail=failure, **different)


def living(
    kind: Literal["agent", "process", "member"] = "process", idle: float = 0, name: str = "make"
) -> Living:
    """Something that is alive, idle for so many seconds."""
    return Living(kind=kind, name=name, idle_seconds=idle)


def rescue(commits: int = 1, branch: str | None = None, reason: str = "rescued") -> Rescue:
    """What a rescue did."""
    safe = Snapshot(
        id="s-1", ref="refs/guard/s-1", files=2, skipped=(), whole=True, recover="guard restore s-1"
    )
    return Rescue(
        commits=(OID,) * commits,
        snapshot=safe,
        held_back=(),
        branch=branch,
        reason=reason,
        detail=f"{reason}: {commits} commits",
    )
