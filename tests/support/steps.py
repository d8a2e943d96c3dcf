"""Reports of a step, made of whatever text a test wants in them."""

from typing import Any

from guard.core.check.report import BreakerLine, CheckReport, Fact
from guard.core.github.report import Push, StepReport
from guard.core.prove.report import Proof
from guard.core.snapshots.snapshot import HeldBack, PlannedCommit, Rescue
from guard.core.work.count import CommitLine, Work
from guard.core.work.leftovers import Uncommitted

__all__ = ["NO_PUSH", "checked", "proof", "step"]
OID = "a" * 40
NO_PUSH = Push(ref=None, pushed=False, why="not_asked", detail="")


def checked(text: str = "text", **fields: Any) -> CheckReport:
    """A check with this text wherever an agent can put any."""
    line = text[:500]
    given: dict[str, Any] = {
        "complete": False,
        "status": "timeout",
        "reason": line,
        "detail": f"{text}, in full",
        "new_commits": 1,
        "uncommitted": Uncommitted(untracked=(text,)),
        "rescued": False,
        "rescued_commits": 0,
        "probes": 2,
        "baseline": OID,
        "head": OID,
        "retry_at": None,
        "team": None,
        "breaker": BreakerLine(state="open", streak=3, reason=line, retry_at=None),
        "evidence": (Fact(source="probe", fact=text),),
        "elapsed_seconds": 1.0,
        "run": "r1",
        "iteration": 1,
        "agent": None,
        "session": None,
        "exit_code": 0,
        "work": Work(
            new_commits=1, head=OID, branch=f"refs/heads/{text}"[:500], commits=(commit_line(text),)
        ),
        "snapshot": None,
        "rescue": Rescue(
            commits=(OID,),
            snapshot=None,
            held_back=(HeldBack(path=line, why=line),),
            branch=None,
            reason=line,
            detail=line,
            plan=(PlannedCommit(subject=line, files=1, paths=(line,)),),
        ),
        "proof": proof(text),
    }
    return CheckReport(**{**given, **fields})


def proof(text: str = "text", **fields: Any) -> Proof:
    """A refutation with this text wherever an agent can put any."""
    line = text[:500]
    given: dict[str, Any] = {
        "result": "refuted",
        "reason": "new_failures",
        "detail": line,
        "check": "command",
        "command": text,
        "baseline": OID,
        "tests_baseline": OID,
        "checks": (),
        "head": OID,
        "head_tree": OID,
        "cells": {},
        "changed_test_files": (line,),
        "notes": (line,),
        "tail": text,
        "seconds": 1.0,
        **dict.fromkeys(("new_failures", "still_failing", "fixed", "vanished"), (line,)),
        **dict.fromkeys(("newly_skipped", "weakened", "rewritten", "vacuous"), (line,)),
        "flaky": (line,),
    }
    return Proof(**{**given, **fields})


def commit_line(text: str) -> CommitLine:
    return CommitLine(oid=OID, subject=text[:200], branch=None)


def step(text: str = "text", **fields: Any) -> StepReport:
    """The report of a step with such a check."""
    check = fields.pop("check", None) or checked(text)
    given: dict[str, Any] = {
        "mode": "run",
        "complete": check.complete,
        "status": check.status,
        "reason": check.reason,
        "detail": check.detail,
        "exit_code": 10,
        "breaker": check.breaker,
        "probe_cost_usd": 0.25,
        "settled": True,
        "baseline": None,
        "check": check,
    }
    return StepReport(**{**given, **fields})
