"""Events that the metrics are counted from, made short, and the grammar of Prometheus' text format."""

import re
from datetime import timedelta
from itertools import count
from typing import Any

from guard.core.breaker.events import BreakerClosed, BreakerOpened, TrialClaimed
from guard.core.check.events import CheckMade
from guard.core.iteration.events import IterationEnded, IterationStarted
from guard.core.iteration.facts import Status
from guard.core.prove.events import ProofMade
from guard.core.prove.summary import ProofResult
from guard.core.rescue.events import RescueMade
from tests.support.events import MOMENT

_numbers = count(1)


def common(iteration: int | None, worktree: str = "w1", run: str | None = "r1") -> dict[str, Any]:
    number = next(_numbers)
    at = MOMENT + timedelta(seconds=number)
    return {
        "id": f"m-{number}",
        "at": at,
        "run": run,
        "iteration": iteration,
        "worktree": worktree,
    }


def begun(iteration: int = 1, **place: str) -> IterationStarted:
    return IterationStarted(**common(iteration, **place))


def ended(iteration: int = 1, status: Status = "complete", **place: str) -> IterationEnded:
    return IterationEnded(
        **common(iteration, **place), status=status, reason="x", elapsed_seconds=1
    )


def checked(
    iteration: int = 1,
    *,
    probes: int = 0,
    alive: int = 0,
    commits: int = 0,
    cost: float | None = None,
    **place: str,
) -> CheckMade:
    return CheckMade(
        **common(iteration, **place),
        status="timeout",
        reason="no_commits",
        detail="",
        complete=False,
        new_commits=commits,
        uncommitted=0,
        rescued=False,
        rescued_commits=0,
        probes=probes,
        probe_cost_usd=cost,
        alive=alive,
        retry_at=None,
        elapsed_seconds=1,
        left=(),
        policy={},
        looks=(),
    )


def rescued(commits: int) -> RescueMade:
    return RescueMade(
        **common(1),
        commits=("a" * 40,) * commits,
        snapshot=None,
        held_back=(),
        branch=None,
        reason="x",
        detail="",
    )


def proof_made(
    result: ProofResult = "proven",
    *,
    tree: str = "b" * 40,
    head: str = "a" * 40,
    failures: tuple[str, ...] = (),
    **place: Any,
) -> ProofMade:
    return ProofMade(
        **common(place.pop("iteration", 1), **place),
        result=result,
        reason="green" if result == "proven" else "new_failures",
        detail="1 test passes" if result == "proven" else "1 test fails that passed before",
        head=head,
        head_tree=tree,
        cells={},
        new_failures=failures,
        weakened=(),
        rewritten=(),
        still_failing=0,
        flaky=0,
        vacuous=0,
        checks=(),
        counts=True,
        seconds=1,
    )


def opened(iteration: int | None = 1, reason: str = "no_commits", **place: Any) -> BreakerOpened:
    return BreakerOpened(
        **common(iteration, **place),
        boot_seconds=1,
        boot_id=None,
        reason=reason,
        cooldown_seconds=1800,
        head=None,
    )


def claimed() -> TrialClaimed:
    return TrialClaimed(
        **common(None, run=None),
        boot_seconds=1,
        boot_id=None,
        reason="cooldown_over",
        holder=None,
        lease_seconds=60,
    )


def closed(**place: str) -> BreakerClosed:
    return BreakerClosed(**common(1, **place), reason="commits")


_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_VALUE = r"(?:NaN|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({_NAME})(\{{{_LABEL}(?:,{_LABEL})*\}})? ({_VALUE})")


def families(text: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Each family's kind and samples; the grammar of the text format is checked on the way."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    assert text.endswith("\n")
    lines = iter(text[:-1].split("\n"))
    name, line = "", next(lines, None)
    while line is not None:
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in found
            kind = next(lines).removeprefix(f"# TYPE {name} ")
            found[name] = (kind, {})
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == name
            found[name][1][sample[2] or ""] = sample[3]
        line = next(lines, None)
    return found
