"""List agents and wait for them; record the end of an agent whose session or process is provably gone."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from guard.agents import registry
from guard.agents.liveness import LivenessLook, look_all, seconds_since_placed, watched_processes
from guard.agents.update import require_agent
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
from guard.core.agents.roster import NO_AGENTS
from guard.core.agents.whereabouts import Placing
from guard.core.base.text import plural
from guard.errors import GuardError, Refused
from guard.system.host import read_host

if TYPE_CHECKING:
    from guard.system.file_events import News

_LONGEST_PAUSE = 15.0
"""How often guard looks at an agent whose end sends no event, such as a session on another machine."""
_SHORTEST_ROUND = 0.2
_MOST_NAMED = 5


def list_agents(
    guard: Invocation,
    task_id: str | None,
    *,
    everything: bool = False,
    looks: bool = True,
) -> AgentsReport:
    """List the agents of a task, or of all tasks; `everything` adds finished ones that the global registry dropped."""
    seen = record_ends(guard, _find_agents(guard, task_id, everything)) if looks else {}
    found = _find_agents(guard, task_id, everything)
    view = (
        guard.store.view(GLOBAL_REGISTRY)
        if task_id is None
        else guard.store.view(AGENT_REGISTRY, task_id)
    )
    active, completed, spawned = view.counts() if view else NO_AGENTS
    return AgentsReport(
        task_id=task_id,
        active=active,
        completed=completed,
        spawned=spawned,
        agents=tuple(_with_liveness(agent, seen.get(_key(agent))) for agent in found),
    )


def task_status(guard: Invocation, task_id: str) -> TaskStatus:
    report = list_agents(guard, task_id)
    view = guard.store.view(AGENT_REGISTRY, task_id)
    by_status = view.by_status if view else {}
    return {
        "task_id": task_id,
        "agents": {
            "active": report.active,
            "completed": report.completed,
            "spawned": report.spawned,
            "by_status": {str(status): count for status, count in by_status.items()},
            "list": [agent.model_dump(mode="json") for agent in report.agents],
        },
    }


def _find_agents(guard: Invocation, task_id: str | None, everything: bool) -> Sequence[Agent]:
    store = guard.store
    if task_id is not None:
        task = store.view(AGENT_REGISTRY, check_id("a task id", task_id))
        return task.agents if task else ()
    if everything:
        tasks = store.views(AGENT_REGISTRY).values()
        return [agent for task in tasks for agent in task.agents]
    overall = store.view(GLOBAL_REGISTRY)
    return overall.agents if overall else ()


def _key(agent: Agent) -> tuple[str, str, int]:
    return agent.task_id, agent.agent_id, agent.incarnation


def _with_liveness(agent: Agent, seen: LivenessLook | None) -> ListedAgent:
    if agent.status not in ACTIVE:
        seen = LivenessLook("ended", agent.detail or f"reported as {agent.status}")
    elif seen is None:
        seen = LivenessLook("unknown", "guard did not look")
    fields = {name: getattr(agent, name) for name in Agent.model_fields}
    return ListedAgent(**fields, liveness=seen.state, seen=seen.detail[:512])


def record_ends(
    guard: Invocation, found: Iterable[Agent]
) -> dict[tuple[str, str, int], LivenessLook]:
    """Look at the active ones of these agents; record which have ended, and sessions that are seen for the first time."""
    active = [agent for agent in found if agent.status in ACTIVE]
    now = guard.clock.now()
    places = [(agent.whereabouts, seconds_since_placed(agent, guard.clock)) for agent in active]
    grace = guard.users_config.settings.registry.session_start_seconds
    looks = look_all(places, here=read_host(), start_grace=grace)
    for agent, seen in zip(active, looks, strict=True):
        try:
            if seen.state == "ended":
                _record_end(guard, agent, seen)
            elif seen.learnt is not None:
                learnt = Placing(seen.learnt, guard.clock.boot())
                registry.record_place(guard.writable_store, now, agent, learnt)
        except GuardError as error:
            guard.output.warn(
                f"what was seen of agent {agent.agent_id} could not be recorded: {error.message}"
            )
    return {_key(agent): seen for agent, seen in zip(active, looks, strict=True)}


def _record_end(guard: Invocation, agent: Agent, seen: LivenessLook) -> None:
    from guard.claims.validate import validate_claim

    now = guard.clock.now()
    validation, _ = validate_claim(guard, agent, "", now, silent=True)
    report = registry.record_end(guard.writable_store, now, agent, seen.detail[:512], validation)
    if report is not None:
        guard.output.note(
            f"detected that agent {agent.agent_id} of task {agent.task_id} has ended: {seen.detail}"
        )
        guard.output.note(transition_line(report))


def describe_agent(guard: Invocation, task_id: str, agent_id: str) -> AgentDetailReport:
    from guard.core.claims.validate import explain_score

    agent = require_agent(guard, task_id, agent_id)
    seen = record_ends(guard, [agent])
    agent = require_agent(guard, task_id, agent_id)
    findings = guard.store.view(FINDINGS, task_id)
    validation = agent.completion_validation
    return AgentDetailReport(
        agent=_with_liveness(agent, seen.get(_key(agent))),
        findings=tuple(
            finding
            for finding in (findings.findings if findings else ())
            if (finding.agent_id, finding.incarnation) == (agent_id, agent.incarnation)
        ),
        score=tuple(line[:512] for line in explain_score(validation)) if validation else (),
    )


def wait_for_agents(
    guard: Invocation,
    task_id: str,
    timeout: float | None,
    say: Callable[[str], None],
) -> AgentsReport:
    """Wait until no agent of the task is active, or the timeout has passed; `say` gets a line per change."""
    deadline = None if timeout is None else monotonic() + timeout
    while True:
        begun = monotonic()
        with agent_news(guard, task_id) as news:
            report = list_agents(guard, task_id)
            if not report.spawned:
                raise Refused(
                    f"task {task_id} never had an agent", "check its name: `guard agent list`"
                )
            left = _LONGEST_PAUSE if deadline is None else deadline - monotonic()
            if not active_agents(report) or left <= 0:
                return report
            say(_progress_line(report))
            news.wait(min(left, _LONGEST_PAUSE))
        # An end that could not be recorded would wake this loop again at once.
        sleep(max(0.0, min(left, begun + _SHORTEST_ROUND - monotonic())))


def agent_news(guard: Invocation, task_id: str | None, files: Iterable[Path] = ()) -> "News":
    """Watch the log, the processes whose end may be an agent's end, and these files."""
    from guard.system.file_events import News

    found = _find_agents(guard, task_id, False)
    places = [agent.whereabouts for agent in found if agent.status in ACTIVE]
    running = watched_processes(places, here=read_host())
    return News(files, running, guard.store.bell())


def active_agents(report: AgentsReport) -> list[ListedAgent]:
    # An end that could not be recorded is an end all the same.
    return [
        agent for agent in report.agents if agent.status in ACTIVE and agent.liveness != "ended"
    ]


def _progress_line(report: AgentsReport) -> str:
    active = active_agents(report)
    names = ", ".join(f"{agent.agent_id} {agent.status}" for agent in active[:_MOST_NAMED])
    more = f" and {len(active) - _MOST_NAMED} more" if len(active) > _MOST_NAMED else ""
    return f"task {report.task_id}: waiting for {plural(len(active), 'agent')}; {names}{more}"
