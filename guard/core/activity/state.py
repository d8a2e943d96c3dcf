"""The view of one watched agent: the prompts that it was sent, and the lessons from those that were not needed."""

from typing import Literal, assert_never, get_args

from pydantic import Field

from guard.core.activity import events
from guard.core.agents.baseline import baseline_key
from guard.core.base.fast_models import entry_from
from guard.core.base.fields import Count, Digest, Frozen, Id, Incarnation, Instant, Line
from guard.core.log.view import FieldsFold, ViewDocument, ViewKind

MOST_KEPT = 20


class SentResume(Frozen):
    """One prompt that was sent to the agent."""

    at: Instant
    incarnation: Incarnation
    way: events.ResumeWay
    stall: Digest
    last_activity: Instant | None
    lookback_minutes: events.Minutes
    false_alarm: bool = False


class FalseAlarm(Frozen):
    """One prompt that was not needed, and how that became known."""

    resumed_at: Instant
    learned_at: Instant
    proof: Line
    silence_minutes: events.Minutes
    lookback_minutes: events.Minutes


class WatchedAgent(ViewDocument):
    """The prompts and lessons of one agent, over all its incarnations."""

    schema_: Literal["guard/watched-agent/1"] = Field("guard/watched-agent/1", alias="schema")
    task_id: Id
    agent_id: Id
    resumes: tuple[SentResume, ...]
    """The newest last."""
    total_resumes: Count
    learned_lookback_minutes: events.Minutes | None
    """How far to look back for the agent, if guard has learned that."""
    false_alarms: tuple[FalseAlarm, ...]
    forgotten_at: Instant | None

    def key(self) -> str:
        return baseline_key(self.task_id, self.agent_id)


class WatchedAgentFold(FieldsFold[WatchedAgent]):
    document_class = WatchedAgent

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._fields = {
            "resumes": (),
            "total_resumes": 0,
            "learned_lookback_minutes": None,
            "false_alarms": (),
            "forgotten_at": None,
        }

    def apply(self, event: events.WatchEvent) -> None:
        self._fields |= {"task_id": event.task_id, "agent_id": event.agent_id}
        match event:
            case events.ResumeSent():
                self._apply_sent(event)
            case events.FalseAlarmLearned():
                self._apply_learned(event)
            case events.ActivityForgotten():
                kept = {"false_alarms": (), "learned_lookback_minutes": None}
                self._fields |= {**kept, "forgotten_at": event.at}
            case _:
                assert_never(event)

    def _apply_sent(self, event: events.ResumeSent) -> None:
        sent = entry_from(SentResume, event, false_alarm=False)
        self._fields["resumes"] = (*self._fields["resumes"], sent)[-MOST_KEPT:]
        self._fields["total_resumes"] += 1

    def _apply_learned(self, event: events.FalseAlarmLearned) -> None:
        alarm = entry_from(FalseAlarm, event, learned_at=event.at)
        self._fields["false_alarms"] = (*self._fields["false_alarms"], alarm)[-MOST_KEPT:]
        self._fields["learned_lookback_minutes"] = event.lookback_minutes
        self._fields["resumes"] = tuple(
            resume.model_copy(update={"false_alarm": True})
            if resume.at == event.resumed_at
            else resume
            for resume in self._fields["resumes"]
        )


WATCHED_AGENT: ViewKind[WatchedAgent, WatchedAgentFold] = ViewKind(
    document=WatchedAgent,
    fold=WatchedAgentFold,
    events=get_args(events.WatchEvent),
    key=lambda event: baseline_key(event.task_id, event.agent_id),
    folder="agents.d/",
    file="/watched.json",
    needles=lambda _key: (
        b'"type":"resume_sent"',
        b'"type":"false_alarm_learned"',
        b'"type":"activity_forgotten"',
    ),
)
