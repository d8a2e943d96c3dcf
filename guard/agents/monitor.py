"""Agents looked after: whether their sessions and processes still exist, and what follows if not.

Only what is provably gone ends an agent. What cannot be looked at stays as it is.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from guard.agents import registry as agents
from guard.agents.liveness import LivenessLook, look_all, processes_of
from guard.agents.report import age_of, known
from guard.context.ids import check_id
from guard.context.invocation import Invocation
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.findings import FINDINGS
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.agents.report import (
    AgentDetailReport,
    AgentsReport,
    ListedAgent,
    TaskStatus,
    transition_line,
)
from guard.core.agents.whereabouts import Placing
from guard.core.base.text import plural
from guard.errors import GuardError, Refused
from guard.store.log import LIVE
from guard.system.host import here

if TYPE_CHECKING:
    from guard.system.news import News

_LONGEST_PAUSE = 15.0
"""What sends no news of its end, such as a session on another machine, is looked at so often."""
_SHORTEST_ROUND = 0.2
_MOST_NAMED = 5


def listed(
    guard: Invocation,
    task_id: str | None,
    *,
    everything: bool = False,
    looks: bool = True,
) -> AgentsReport:
    """The agents of a task, or of all tasks; `everything` includes the finished ones that the global registry dropped."""
    seen = _look(guard, _agents(guard, task_id, everything)) if looks else {}
    found = _agents(guard, task_id, everything)
    active, completed, spawned = _counts(guard, task_id)
    return AgentsReport(
        task_id=task_id,
        active=active,
        completed=completed,
        spawned=spawned,
        agents=tuple(_listed(agent, seen.get(_name(agent))) for agent in found),
    )


def task_status(guard: Invocation, task_id: str) -> TaskStatus:
    """The same for one task, in plain values."""
    report = listed(guard, task_id)
    registry = guard.store.view(AGENT_REGISTRY, task_id)
    return {
        "task_id": task_id,
        "agents": {
            "active": report.active,
            "completed": report.completed,
            "spawned": report.spawned,
            "by_status": {str(name): n for name, n in registry.by_status.items()}
            if registry
            else {},
            "list": [agent.model_dump(mode="json") for agent in report.agents],
        },
    }


def _agents(guard: Invocation, task_id: str | None, everything: bool) -> Sequence[Agent]:
    store = guard.store
    if task_id is not None:
        registry = store.view(AGENT_REGISTRY, check_id("a task id", task_id))
        return registry.agents if registry else ()
    if everything:
        registries = store.views(AGENT_REGISTRY).values()
        return [agent for registry in registries for agent in registry.agents]
    overall = store.view(GLOBAL_REGISTRY)
    return overall.agents if overall else ()


def _counts(guard: Invocation, task_id: str | None) -> tuple[int, int, int]:
    if task_id is not None:
        task = guard.store.view(AGENT_REGISTRY, task_id)
        return (task.active_count, task.completed_count, task.total_spawned) if task else (0, 0, 0)
    overall = guard.store.view(GLOBAL_REGISTRY)
    if overall is None:
        return 0, 0, 0
    return overall.active_agents, overall.completed_agents, overall.total_agents_spawned


def _name(agent: Agent) -> tuple[str, str, int]:
    return agent.task_id, agent.agent_id, agent.incarnation


def _listed(agent: Agent, seen: LivenessLook | None) -> ListedAgent:
    if agent.status not in ACTIVE:
        seen = LivenessLook("ended", agent.detail or f"reported as {agent.status}")
    elif seen is None:
        seen = LivenessLook("unknown", "nobody looked")
    fields = {name: getattr(agent, name) for name in Agent.model_fields}
    return ListedAgent(**fields, liveness=seen.state, seen=seen.detail[:512])


def _look(guard: Invocation, found: Iterable[Agent]) -> dict[tuple[str, str, int], LivenessLook]:
    """Look at every active agent, and record what is found out: ends, and sessions seen for the first time."""
    active = [agent for agent in found if agent.status in ACTIVE]
    now = guard.clock.now()
    places = [(agent.whereabouts, age_of(guard, agent)) for agent in active]
    grace = guard.users_config.settings.registry.session_start_seconds
    looks = look_all(places, here=here(), start_grace=grace)
    for agent, seen in zip(active, looks, strict=True):
        try:
            if seen.state == "ended":
                _mark(guard, agent, seen)
            elif seen.learnt is not None:
                learnt = Placing(seen.learnt, guard.clock.boot())
                agents.place(guard.writable_store, now, agent, learnt)
        except GuardError as error:
            guard.output.warn(
                f"what was seen of agent {agent.agent_id} could not be recorded: {error.message}"
            )
    return {_name(agent): seen for agent, seen in zip(active, looks, strict=True)}


def _mark(guard: Invocation, agent: Agent, seen: LivenessLook) -> None:
    from guard.claims.validate import validate_claim

    now = guard.clock.now()
    validation = validate_claim(guard, agent, "", now, silent=True)
    report = agents.end_detected(guard.writable_store, now, agent, seen.detail[:512], validation)
    if report is not None:
        guard.output.note(
            f"detected that agent {agent.agent_id} of task {agent.task_id} has ended: {seen.detail}"
        )
        guard.output.note(transition_line(report))


def detailed(guard: Invocation, task_id: str, agent_id: str) -> AgentDetailReport:
    """One agent with its findings and the score of its claim."""
    from guard.core.claims.validate import explain_score

    agent = known(guard, task_id, agent_id)
    seen = _look(guard, [agent])
    agent = known(guard, task_id, agent_id)
    findings = guard.store.view(FINDINGS, task_id)
    validation = agent.completion_validation
    return AgentDetailReport(
        agent=_listed(agent, seen.get(_name(agent))),
        findings=tuple(
            one
            for one in (findings.findings if findings else ())
            if (one.agent_id, one.incarnation) == (agent_id, agent.incarnation)
        ),
        score=tuple(line[:512] for line in explain_score(validation)) if validation else (),
    )


def wait_for(
    guard: Invocation,
    task_id: str,
    timeout: float | None,
    say: Callable[[str], None],
) -> AgentsReport:
    """Wait until no agent of the task is active, or the time is over."""
    deadline = None if timeout is None else monotonic() + timeout
    while True:
        begun = monotonic()
        with news_of(guard, task_id) as news:
            report = listed(guard, task_id)
            if not report.spawned:
                raise Refused(
                    f"task {task_id} never had an agent", "check its name: `guard agent list`"
                )
            left = _LONGEST_PAUSE if deadline is None else deadline - monotonic()
            if not still_active(report) or left <= 0:
                return report
            say(_waiting(report))
            news.wait(min(left, _LONGEST_PAUSE))
        # An end that could not be recorded is news again and again.
        sleep(max(0.0, min(left, begun + _SHORTEST_ROUND - monotonic())))


def news_of(guard: Invocation, task_id: str | None, files: Iterable[Path] = ()) -> "News":
    """Of the log, of the processes whose end may be an agent's end, and of these files."""
    from guard.system.news import News

    found = _agents(guard, task_id, False)
    places = [agent.whereabouts for agent in found if agent.status in ACTIVE]
    return News([guard.workspace.path / LIVE, *files], processes_of(places, here=here()))


def still_active(report: AgentsReport) -> list[ListedAgent]:
    """Those that have not ended, whether or not the end of the others could be recorded."""
    return [one for one in report.agents if one.status in ACTIVE and one.liveness != "ended"]


def _waiting(report: AgentsReport) -> str:
    active = still_active(report)
    names = ", ".join(f"{one.agent_id} {one.status}" for one in active[:_MOST_NAMED])
    more = f" and {len(active) - _MOST_NAMED} more" if len(active) > _MOST_NAMED else ""
    return f"task {report.task_id}: waiting for {plural(len(active), 'agent')}; {names}{more}"
