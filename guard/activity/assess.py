"""Assess whether an agent is at work, learn from needless prompts, and decide whether to send one."""

from dataclasses import dataclass

from guard.activity.collect import CollectedSigns, collect
from guard.activity.known_agents import KnownAgents, find_agent
from guard.activity.subject import AgentSubject
from guard.agents.registry import refuse_invalid_fields, stamp_of
from guard.context.invocation import Invocation
from guard.core.activity.assess import assess
from guard.core.activity.events import ActivityForgotten, FalseAlarmLearned
from guard.core.activity.judge import JudgeInput, Judgement, initial_terms, judge
from guard.core.activity.learn import Lesson, lesson_from_person, lesson_from_signs
from guard.core.activity.report import ActivityReport, activity_report
from guard.core.activity.state import WATCHED_AGENT, WatchedAgent
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import baseline_key
from guard.core.base.text import utf8_text
from guard.errors import GuardError, Refused, WrongUsage


@dataclass(frozen=True)
class Look(Judgement):
    """The judgement on one agent, with the signs that it was made from."""

    collected: CollectedSigns


def look(
    subject: AgentSubject, *, lookback_minutes: float | None = None, all_sources: bool = False
) -> Look:
    """Collect the signs of one agent and judge it by them; an agent that has ended is not at work."""
    agent = subject.agent
    given = JudgeInput(
        subject.settings, agent.agent_id, lookback_minutes, subject.watched, subject.gaps
    )
    if agent.status not in ACTIVE:
        return _judge_ended(subject, given)
    signs = collect(subject, initial_terms(given), all_sources=all_sources)
    found = judge(signs.signals, signs.history, subject.now, given)
    return Look(**vars(found), collected=signs)


def _judge_ended(subject: AgentSubject, given: JudgeInput) -> Look:
    found = judge((), (), subject.now, given)
    ended = assess((), subject.now, found.terms)
    ended = ended.model_copy(update={"reasons": (f"it has ended: {subject.agent.status}",)})
    return Look(ended, found.terms, found.lookback, found.rhythm, CollectedSigns((), ()))


def assess_activity(
    guard: Invocation,
    agent_id: str,
    *,
    task_id: str | None = None,
    lookback_minutes: float | None = None,
    all_sources: bool = False,
) -> ActivityReport:
    """Tell whether an agent is at work, with the signs and the arithmetic."""
    agent = find_agent(guard, agent_id, task_id)
    subject = KnownAgents(guard).subject_of(agent)
    seen = look(subject, lookback_minutes=lookback_minutes, all_sources=all_sources)
    guard.output.note(f"{agent_id}: looked back {seen.lookback.minutes:g} min: {seen.lookback.why}")
    for signal in seen.collected.signals:
        guard.output.note(f"{agent_id}: {signal.source} at {signal.at:%H:%M:%S}: {signal.detail}")
    watched = learn_from(guard, subject, seen)
    return activity_report(
        agent, seen, watched, warnings=seen.collected.warnings, last_seen=seen.collected.last_seen
    )


@dataclass(frozen=True)
class ResumeDecision:
    """Whether an agent may be sent a prompt, and why."""

    allowed: bool
    reason: str
    report: ActivityReport | None = None
    """None if the agent could not be assessed."""


def decide_resume(
    guard: Invocation, agent_id: str, *, task_id: str | None, lookback_minutes: float | None
) -> ResumeDecision:
    """Decide whether to send an agent a prompt; one that has ended or is at work gets none.

    It fails open: a stalled agent that gets no prompt is lost, a working one that gets a prompt is only disturbed. An agent
    that guard does not know gets one, too.
    """
    try:
        report = assess_activity(
            guard, agent_id, task_id=task_id, lookback_minutes=lookback_minutes
        )
    except Refused as error:
        return ResumeDecision(True, f"{error.message}: a prompt is allowed")
    except WrongUsage:
        raise
    except Exception as error:  # No failure of a look may leave a stalled agent asleep.
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        return ResumeDecision(
            True, f"its activity could not be assessed ({why}): a prompt is allowed"
        )
    if report.status not in ACTIVE:
        return ResumeDecision(False, f"it has ended: {report.status}", report)
    if report.is_active:
        return ResumeDecision(False, f"it is active: {report.reasons[0]}", report)
    if report.signals and not report.validation_passed:
        reason = f"it is not known to be active: {'; '.join(report.reasons)}"
        return ResumeDecision(True, reason, report)
    return ResumeDecision(True, "; ".join(report.reasons), report)


def learn_from(guard: Invocation, subject: AgentSubject, seen: Look) -> WatchedAgent | None:
    """Record the lesson of a look, if there is one, and return the agent's view; it counts from the next look on."""
    watched, agent = subject.watched, subject.agent
    if watched is None:
        return None
    patterns, max_minutes = seen.terms.noise_patterns, subject.settings.max_lookback_minutes
    lesson = lesson_from_signs(
        watched, agent.incarnation, seen.collected.signals, max_minutes, patterns
    )
    if lesson is None:
        return watched
    try:
        return _record_lesson(guard, agent, lesson)
    except GuardError as error:
        guard.output.warn(
            f"cannot record what was learned about agent {agent.agent_id}: {error.message}"
        )
        return watched


def record_feedback(
    guard: Invocation,
    agent_id: str,
    *,
    task_id: str | None,
    false_alarm: bool,
    forget: bool,
    reason: str,
) -> None:
    """Record that a person calls the newest prompt a false alarm, or wants the lessons forgotten."""
    if false_alarm and forget:
        raise WrongUsage(
            "--false-alarm and --forget contradict each other", "give one of them per call"
        )
    agent = find_agent(guard, agent_id, task_id)
    if false_alarm:
        _mark_false_alarm(guard, agent, reason)
    elif not _forget_lessons(guard, agent, reason):
        guard.output.warn(f"guard has learned nothing about agent {agent.agent_id}")


def _mark_false_alarm(guard: Invocation, agent: Agent, reason: str) -> None:
    watched = guard.store.view(WATCHED_AGENT, baseline_key(agent.task_id, agent.agent_id))
    if watched is None or not watched.resumes:
        raise Refused(
            f"guard has sent agent {agent.agent_id} no prompt",
            "`guard activity` can only learn from prompts of `guard resume --send`",
        )
    max_minutes = guard.config.settings.activity.max_lookback_minutes
    lesson = lesson_from_person(watched, utf8_text(reason)[:400], max_minutes)
    if lesson is not None:
        _record_lesson(guard, agent, lesson)


def _forget_lessons(guard: Invocation, agent: Agent, reason: str) -> bool:
    with guard.writable_store.change() as change, refuse_invalid_fields():
        watched = change.view(WATCHED_AGENT, baseline_key(agent.task_id, agent.agent_id))
        if watched is None or watched.learned_lookback_minutes is None:
            return False
        change.append(
            ActivityForgotten(**stamp_of(agent, guard.clock.now()), reason=utf8_text(reason)[:512])
        )
    return True


def _record_lesson(guard: Invocation, agent: Agent, lesson: Lesson) -> WatchedAgent:
    key = baseline_key(agent.task_id, agent.agent_id)
    with guard.writable_store.change() as change, refuse_invalid_fields():
        known = change.fold(WATCHED_AGENT, key).document()
        # Another guard may have learned the same a moment ago.
        if not any(
            resume.at == lesson.resumed_at and resume.false_alarm for resume in known.resumes
        ):
            stamp = stamp_of(agent, guard.clock.now())
            change.append(FalseAlarmLearned(**stamp, **dict(lesson)))
        return change.fold(WATCHED_AGENT, key).document()
