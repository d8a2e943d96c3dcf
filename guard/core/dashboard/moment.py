"""What was known after any record of the log, in figures that each follow from the records up to there."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from guard.core.agents.agent import ACTIVE
from guard.core.base.text import plural
from guard.core.check.words import status_word
from guard.core.coordinator.state import task_statuses
from guard.core.cost.text import dollars
from guard.core.cost.usage import total_usage
from guard.core.report.night import Night

_MOST_NAMES = 20


@dataclass(frozen=True)
class MomentFact:
    """One line of the state."""

    name: str
    label: str
    text: str


def state_after(night: Night) -> tuple[MomentFact, ...]:
    """Return the state after the last record that the night was fed with."""
    return tuple(MomentFact(name, label, text) for name, label, text in _facts(night))


def _facts(night: Night) -> Iterator[tuple[str, str, str]]:
    iterations = list(night.in_order())
    is_open = sum(run.ended is None for run in night.runs.values())
    yield "runs", "Runs begun", f"{len(night.runs)}, {is_open} not ended"
    yield "iterations", "Iterations begun", str(len(iterations))
    counts = Counter(each.status for each in iterations if each.status is not None)
    unjudged = len(iterations) - counts.total()
    words = [f"{count} {status_word(status)}" for status, count in counts.items()]
    words += [f"{unjudged} without a verdict"] if unjudged else []
    yield "verdicts", "Verdicts", ", ".join(words) or "none"
    yield "commits", "New commits", str(sum(each.commits for each in iterations))
    yield "rescued", "Rescued commits", str(sum(len(each.rescued) for each in iterations))
    proofs = Counter(proof.result for proof in night.proofs)
    yield "proofs", "Proofs", ", ".join(f"{n} {what}" for what, n in proofs.items()) or "none"
    yield "breakers", "Breakers", _breakers(night)
    yield "agents", "Agents at work", _agents(night)
    yield "plan", "Plan", _plan(night)
    cost = total_usage(each.usage for each in iterations).cost_usd
    yield "cost", "Cost", dollars(cost) if cost is not None else "unknown"


def _breakers(night: Night) -> str:
    words = []
    for key, state in night.breakers.items():
        why = f" ({state.reason})" if state.reason and state.state != "closed" else ""
        words.append(f"{key}: {state.state.replace('_', ' ')}{why}")
    return "; ".join(words) or "none yet"


def _agents(night: Night) -> str:
    names = [
        f"{each.agent_id} on {each.task_id} ({each.status})"
        for each in night.agents.values()
        if each.status in ACTIVE
    ]
    more = [f"and {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return ", ".join([*names[:_MOST_NAMES], *more]) or "none"


def _plan(night: Night) -> str:
    plan = night.plan
    if plan is None or not plan.tasks:
        return "none"
    counts = Counter(task_statuses(plan).values())
    words = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
    asked = [each for each in plan.pending_divine_questions if each.response is None]
    questions = f"; {plural(len(asked), 'open question')}" if asked else ""
    return f"{plural(len(plan.tasks), 'task')}: {words}{questions}"
