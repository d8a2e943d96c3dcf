"""What is learned of an agent from prompts that it did not need: recorded once for each, and forgotten on demand."""

from guard.activity.look import Look
from guard.activity.subject import AgentSubject
from guard.agents import records
from guard.context.invocation import Invocation
from guard.core.activity.learn import Lesson, lesson, told
from guard.core.activity.watched import WATCHED_AGENT, WatchedAgent
from guard.core.agents.agent import Agent
from guard.core.agents.baseline import baseline_key
from guard.core.base.text import valid
from guard.core.events.activity import ActivityForgotten, FalseAlarmLearned
from guard.errors import GuardError, Refused


def learned(guard: Invocation, subject: AgentSubject, seen: Look) -> WatchedAgent | None:
    """What is known from watching the agent, with what this look taught; it counts from the next look on."""
    watched, agent = subject.watched, subject.agent
    if watched is None:
        return None
    patterns, most = seen.terms.noise_patterns, subject.settings.max_lookback_minutes
    found = lesson(watched, agent.incarnation, seen.collected.signals, most, patterns)
    if found is None:
        return watched
    try:
        return _record(guard, agent, found)
    except GuardError as error:
        guard.output.warn(
            f"what was learned of agent {agent.agent_id} could not be recorded: {error.message}"
        )
        return watched


def call_false(guard: Invocation, agent: Agent, reason: str) -> WatchedAgent:
    """Take the newest prompt that the agent was sent for a false alarm, because a person says so."""
    watched = guard.store.view(WATCHED_AGENT, baseline_key(agent.task_id, agent.agent_id))
    if watched is None or not watched.resumes:
        raise Refused(
            f"agent {agent.agent_id} was sent no prompt",
            "`guard activity` can only learn from prompts of `guard resume --send`",
        )
    most = guard.config.settings.activity.max_lookback_minutes
    found = told(watched, valid(reason)[:400], most)
    return watched if found is None else _record(guard, agent, found)


def forget(guard: Invocation, agent: Agent, reason: str) -> bool:
    """Let what was learned of the agent count no longer; False if there is nothing."""
    key = baseline_key(agent.task_id, agent.agent_id)
    with guard.writable_store.change() as change:
        watched = change.view(WATCHED_AGENT, key)
        if watched is None or watched.learned_lookback_minutes is None:
            return False
        names = records.names(agent.task_id, agent.agent_id, agent.incarnation)
        now = guard.clock.now()
        change.append(records.made(ActivityForgotten, now, names, reason=valid(reason)[:512]))
    return True


def _record(guard: Invocation, agent: Agent, found: Lesson) -> WatchedAgent:
    """Once: another guard may have learned the same a moment ago."""
    key = baseline_key(agent.task_id, agent.agent_id)
    with guard.writable_store.change() as change:
        known = change.fold(WATCHED_AGENT, key).document()
        if not any(one.at == found.resumed_at and one.false_alarm for one in known.resumes):
            names = records.names(agent.task_id, agent.agent_id, agent.incarnation)
            now = guard.clock.now()
            change.append(records.made(FalseAlarmLearned, now, names, **dict(found)))
        return change.fold(WATCHED_AGENT, key).document()
