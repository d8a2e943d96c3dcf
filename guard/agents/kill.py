"""An agent ended on purpose: its session or process first, and the registries when its end was seen."""

from guard.agents import registry as agents
from guard.agents.end import end
from guard.agents.report import kept, known
from guard.claims.validate import validate_claim
from guard.context.invocation import Invocation
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.report import AgentReport
from guard.errors import Refused
from guard.system.host import here


def kill_agent(
    guard: Invocation, task_id: str, agent_id: str, reason: str, grace: float | None = None
) -> AgentReport:
    """End an agent and record why; refused where nothing shows that the process is the agent's."""
    agent = known(guard, task_id, agent_id)
    if agent.status not in ACTIVE:
        raise Refused(
            f"agent {agent_id} of task {task_id} has ended already ({agent.status})",
            f"`guard agent show --task {task_id} --agent {agent_id}` says how",
        )
    store, reason = guard.writable_store, kept(guard, reason)
    longest = guard.users_config.settings.registry.kill_grace_seconds
    seconds = longest if grace is None else grace
    ended = end(agent.whereabouts, here=here(), grace_seconds=seconds, environ=guard.environ)
    if ended.how == "nothing_recorded":
        guard.output.warn(
            "nothing is recorded of its session or process: nothing was ended, only the registries changed"
        )
    if ended.how == "gone_before":
        return _had_ended(guard, agent, reason, ended.detail)
    return agents.killed(store, guard.clock.now(), agent, reason, ended.detail[:512])


def _had_ended(guard: Invocation, agent: Agent, reason: str, detail: str) -> AgentReport:
    """An end that nobody brought about is no kill; that somebody wanted one is in the log."""
    now = guard.clock.now()
    guard.output.warn(f"it was not killed: {detail}")
    validation = validate_claim(guard, agent, "", now, silent=True)
    found = agents.end_detected(guard.writable_store, now, agent, detail[:512], validation)
    late = agents.killed(guard.writable_store, now, agent, reason, detail[:512])
    return found or late
