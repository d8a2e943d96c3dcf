"""What `guard activity` and `guard status` know of an agent from watching it: rhythm, lessons, sleep, outages."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from guard.activity.assess import assess_activity
from guard.activity.known_agents import CLOCK_SECONDS
from guard.activity.survey import survey
from guard.agents import registry
from guard.context.invocation import Invocation
from guard.core.activity.clocks import MACHINE_CLOCKS
from guard.core.activity.events import ClocksRead, FalseAlarmLearned, ResumeSent
from guard.core.activity.state import WATCHED_AGENT
from guard.core.agents.baseline import baseline_key
from guard.system.clock import Clock
from tests.support import commit, run

NOW = datetime.now(UTC).replace(microsecond=0)
"""Agents live before the real time of the test, so that no commit of it is theirs."""


@pytest.fixture(autouse=True)
def chosen(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    commit(repository, "first.txt")


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def at(minutes: float = 0, slept: float | None = None) -> Invocation:
    """A call of guard, so many minutes before now."""
    return Invocation(clock=Clock(ago(minutes), slept))


def lives(*minutes: float, name: str = "a1") -> None:
    """An agent that reported progress so many minutes before now."""
    store = at().writable_store
    begun = ago(max(minutes) + 1)
    registry.spawn(store, begun, task_id="T1", agent_id=name)
    for number in sorted(minutes, reverse=True):
        text = f"Step {number} of the form is done."
        registry.update(
            store, ago(number), registry.AgentUpdate("T1", name, "working", message=text)
        )


def bursts(quiet: float, count: int, last: float) -> list[float]:
    """When it reported, if it is quiet for so long between bursts of three reports, and the last was so long ago."""
    times, moment = [], last
    for _ in range(count):
        times += [moment, moment + 2, moment + 4]
        moment += 4 + quiet
    return times


def resumed(minutes: float, quiet: float | None, name: str = "a1") -> None:
    event = ResumeSent(
        at=ago(minutes),
        id=f"resume-{minutes:g}",
        task_id="T1",
        agent_id=name,
        incarnation=1,
        way="inbox",
        stall="a" * 64,
        last_activity=None if quiet is None else ago(minutes + quiet),
        lookback_minutes=60.0,
        prompt="b" * 64,
        reason="silent",
    )
    with at().writable_store.change() as change:
        change.append(event)


def events(kind: type[Any]) -> list[Any]:
    return [one.event for one in at().store.recent() if isinstance(one.event, kind)]


def test_an_agent_that_works_in_bursts_is_looked_back_for_further() -> None:
    lives(*bursts(80, 6, last=85))
    found = assess_activity(at(), "a1")
    assert (found.is_active, found.rhythm.pattern) == (True, "bursty")
    assert (found.lookback_minutes, found.lookback_origin) == (104, "adapted")
    assert "its usual gaps are up to 80 min: looked back 104 min" in found.reasons
    text = run("activity", "a1", env={"GUARD_NOW": NOW.isoformat()}).out
    assert "look-back 104 min (adapted: its usual gaps are up to 80 min)" in text
    assert "rhythm: bursty, usually a sign every 2 min, quiet for up to 80 min" in text
    assert survey(at()).agents[0].is_active is True


@pytest.mark.parametrize(
    ("variable", "value", "minutes", "origin"),
    [
        ("ADAPTIVE", "false", 60, "general"),
        ("MAX_LOOKBACK_MINUTES", "90", 90, "adapted"),
        ("AGENT_TERMS", "a1: lookback_minutes=200", 200, "agent_terms"),
        ("AGENT_TERMS", "a2: lookback_minutes=200", 104, "adapted"),
    ],
)
def test_settings_decide_how_far(variable: str, value: str, minutes: float, origin: str) -> None:
    lives(*bursts(80, 6, last=85))
    env = {f"GUARD_ACTIVITY__{variable}": value, "GUARD_NOW": NOW.isoformat()}
    found = run("activity", "a1", "--format", "json", env=env).json
    assert (found["lookback_minutes"], found["lookback_origin"]) == (minutes, origin)
    assert found["is_active"] is (minutes > 85)


def test_an_option_and_the_confidence_of_a_single_agent() -> None:
    lives(5)
    env = {
        "GUARD_ACTIVITY__AGENT_TERMS": "a1: min_confidence=0.8 lookback_minutes=90",
        "GUARD_NOW": NOW.isoformat(),
    }
    found = run("activity", "a1", "--lookback", "7", "--format", "json", env=env).json
    assert (found["lookback_minutes"], found["lookback_origin"]) == (7, "option")
    assert (found["is_active"], found["min_confidence"]) == (False, 0.8)


def test_too_few_signs_tell_nothing() -> None:
    lives(70, 150, 230)
    found = assess_activity(at(), "a1")
    assert (found.rhythm.pattern, found.lookback_minutes, found.is_active) == ("too_few", 60, False)
    assert (found.last_activity, found.last_seen) == (None, ago(70))


def test_a_late_proof_is_learned_from_once() -> None:
    """A report that is dated before the prompt was written to the log after it."""
    lives(150, 61)
    resumed(50, quiet=100)
    assert events(FalseAlarmLearned) == []
    found = assess_activity(at(), "a1")
    assert [one.lookback_minutes for one in found.false_alarms] == [150]
    assert found.false_alarms[0].proof.startswith("TELEMETRY_EVENT at")
    again = assess_activity(at(), "a1")
    assert (again.lookback_minutes, again.lookback_origin, again.is_active) == (
        150,
        "learned",
        True,
    )
    survey(at())
    assert len(events(FalseAlarmLearned)) == 1
    text = run("activity", "a1", env={"GUARD_NOW": NOW.isoformat()}).out
    assert "1 prompt sent to it" in text
    assert "after 100 min: TELEMETRY_EVENT at" in text


def test_status_learns_too() -> None:
    lives(150, 61)
    resumed(50, quiet=100)
    survey(at())
    assert [one.silence_minutes for one in events(FalseAlarmLearned)] == [100]


def test_a_person_can_call_it_false_and_have_it_forgotten() -> None:
    lives(150)
    refused = run("activity", "a1", "--false-alarm")
    assert (refused.code, refused.out) == (1, "")
    assert "guard has sent agent a1 no prompt" in refused.err
    resumed(50, quiet=100)
    words = ("activity", "a1", "--format", "json", "--reason", "it was\x1b[2J compiling")
    told = run(*words, "--false-alarm").json
    assert (told["lookback_minutes"], told["lookback_origin"]) == (150, "learned")
    assert run(*words, "--false-alarm").json["false_alarms"] == told["false_alarms"]
    assert "\x1b" not in run("activity", "a1").out
    assert run(*words, "--forget").json["lookback_origin"] == "general"
    empty = run(*words, "--forget")
    assert (empty.code, "guard has learned nothing about agent a1" in empty.err) == (0, True)
    watched = at().store.view(WATCHED_AGENT, baseline_key("T1", "a1"))
    assert watched is not None
    assert (watched.false_alarms, watched.total_resumes) == ((), 1)
    assert run("activity", "a1", "--forget", "--false-alarm").code == 2


def test_while_the_machine_sleeps_nobody_is_silent() -> None:
    lives(500)
    assert assess_activity(at(490, slept=0), "a1").is_active
    asleep = assess_activity(at(0, slept=470 * 60), "a1")
    assert (asleep.is_active, asleep.inactivity_minutes) == (True, 30)
    assert "470 min are not counted: the machine slept, or its clock was set" in asleep.reasons
    report = survey(at(0, slept=470 * 60))
    assert (report.agents[0].category, report.agents[0].age_minutes) == ("fresh", 30)
    assert not assess_activity(at(-60, slept=470 * 60), "a1").is_active


def test_without_sleep_the_same_is_a_silence() -> None:
    lives(500)
    assert assess_activity(at(490, slept=0), "a1").is_active
    assert not assess_activity(at(0, slept=0), "a1").is_active
    assert survey(at(0, slept=0)).agents[0].category == "critical"


def test_the_clocks_are_recorded_only_where_they_tell_something() -> None:
    lives(500)
    for seconds in (0, 1, 2, CLOCK_SECONDS / 2):
        assess_activity(at(490 - seconds / 60, slept=0), "a1")
    assert len(events(ClocksRead)) == 1
    assess_activity(at(490 - CLOCK_SECONDS / 60, slept=0), "a1")
    assert len(events(ClocksRead)) == 2
    views = at().store.views(MACHINE_CLOCKS)
    assert [len(one.readings) for one in views.values()] == [2]


def test_a_stopped_clock_that_knows_no_machine_records_nothing() -> None:
    lives(5)
    assert assess_activity(at(), "a1").is_active
    assert events(ClocksRead) == []


def test_agents_that_fell_silent_together_are_one_outage() -> None:
    for number in range(4):
        lives(430 + number, name=f"a{number}")
    lives(5, name="working")
    env = {
        "GUARD_NOW": NOW.isoformat(),
        "GUARD_ACTIVITY__OUTAGE_HOLD_MINUTES": "600",
    }
    found = run("status", "--format", "json", env=env).json
    assert [one["agent_id"] for one in found["outage"]["agents"]] == ["a3", "a2", "a1", "a0"]
    assert found["outage"]["were_active"] == 5
    assert {one["category"] for one in found["agents"]} == {"warning", "fresh"}
    text = run("status", env=env).out
    assert "4 agents of 5 fell silent together (a3, a2, a1, a0)" in text
    over = run("status", "--format", "json", env={"GUARD_NOW": NOW.isoformat()}).json
    assert over["outage"] is None
    assert {one["category"] for one in over["agents"]} == {"critical", "fresh"}


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AGENTS", "4"), ("SHARE", "0.9"), ("WITHIN_MINUTES", "1")],
)
def test_each_setting_of_outages_decides(variable: str, value: str) -> None:
    for number in range(3):
        lives(100 + number, name=f"a{number}")
    lives(5, name="working")
    env = {"GUARD_NOW": NOW.isoformat()}
    assert run("status", "--format", "json", env=env).json["outage"] is not None
    env[f"GUARD_ACTIVITY__OUTAGE_{variable}"] = value
    assert run("status", "--format", "json", env=env).json["outage"] is None
