"""The rules and figures of an assessment, noise, and how stale an agent is."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.activity.assess import ActivityTerms, Assessment, Signal, assess
from guard.core.activity.noise import (
    NOISE_PATTERNS,
    is_acknowledgement,
    is_meaningful_progress,
    is_noise,
    is_resumer_prompt,
)
from guard.core.activity.sources import SOURCES, SourceName, window_seconds
from guard.core.activity.status_report import category

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
TIER_1 = [name for name, source in SOURCES.items() if source.tier == 1]
TIER_2 = [name for name, source in SOURCES.items() if source.tier == 2]
TIER_3 = [name for name, source in SOURCES.items() if source.tier == 3]


def seen(source: SourceName, minutes: float = 1, message: str = "") -> Signal:
    at = NOW - timedelta(minutes=minutes)
    return Signal(source=source, at=at, detail="seen", message=message)


def assessed(*signals: Signal, lookback: float = 60, least: float = 0.5) -> Assessment:
    return assess(signals, NOW, ActivityTerms(lookback_minutes=lookback, min_confidence=least))


def test_tiers_and_the_confidence_of_each_source() -> None:
    bands = {1: (0.8, 0.9), 2: (0.6, 0.7), 3: (0.3, 0.4)}
    for source in SOURCES.values():
        lowest, highest = bands[source.tier]
        assert lowest <= source.confidence <= highest
    assert {"TELEMETRY_EVENT", "GIT_COMMIT", "CONTRACT_CLAIMED", "TEST_EXECUTION"} < set(TIER_1)
    assert {"STATUS_UPDATE", "FILE_MODIFICATION", "DEVLOG_CREATED", "INBOX_PROCESSING"} < set(
        TIER_2
    )
    assert set(TIER_3) == {"MESSAGE_QUEUE", "WORKSPACE_ACCESS"}


@pytest.mark.parametrize(
    ("sources", "confidence", "level"),
    [
        ([], 0.0, "NONE"),
        (["TELEMETRY_EVENT", "GIT_COMMIT"], 0.9, "VERY_HIGH"),
        (["GIT_COMMIT", "GIT_COMMIT"], 0.7, "HIGH"),
        (["CONTRACT_CLAIMED"], 0.7, "HIGH"),
        (["TEST_EXECUTION", "STATUS_UPDATE", "MESSAGE_QUEUE"], 0.7, "HIGH"),
        (["STATUS_UPDATE", "DEVLOG_CREATED"], 0.7, "HIGH"),
        (["STATUS_UPDATE"], 0.5, "MEDIUM"),
        (["STATUS_UPDATE", "STATUS_UPDATE"], 0.5, "MEDIUM"),
        (["STATUS_UPDATE", "WORKSPACE_ACCESS"], 0.5, "MEDIUM"),
        (["MESSAGE_QUEUE", "WORKSPACE_ACCESS"], 0.3, "LOW"),
        (["WORKSPACE_ACCESS"], 0.3, "LOW"),
    ],
)
def test_the_total_is_the_highest_row_that_applies(
    sources: list[SourceName], confidence: float, level: str
) -> None:
    found = assessed(*map(seen, sources))
    assert (found.confidence, found.level) == (confidence, level)


@pytest.mark.parametrize(
    ("minutes", "factor"), [(0, 1), (30, 1), (30.1, 0.85), (60, 0.85), (60.1, 0.7), (200, 0.7)]
)
def test_old_activity_counts_for_less(minutes: float, factor: float) -> None:
    found = assessed(seen("GIT_COMMIT", minutes), lookback=240)
    assert found.confidence == pytest.approx(0.7 * factor)


@pytest.mark.parametrize(
    ("tier", "lookback", "seconds"),
    [(1, 60, 3600), (2, 60, 1800), (3, 60, 900), (1, 120, 7200), (2, 30, 900), (3, 240, 3600)],
)
def test_the_window_of_a_tier_scales_with_the_look_back(
    tier: int, lookback: float, seconds: float
) -> None:
    name = {1: TIER_1, 2: TIER_2, 3: TIER_3}[tier][0]
    assert window_seconds(SOURCES[name].tier, lookback) == seconds
    assert assessed(seen(name, seconds / 60), lookback=lookback).signals
    late = assessed(seen(name, seconds / 60 + 0.1), lookback=lookback)
    assert not late.signals
    assert "older than" in late.passed_over[0]


def test_active_needs_half_of_the_confidence() -> None:
    assert assessed(seen("STATUS_UPDATE")).is_active
    assert not assessed(seen("STATUS_UPDATE", 45), lookback=120).is_active
    assert assessed(seen("STATUS_UPDATE", 45), lookback=120, least=0.4).is_active
    assert not assessed(seen("STATUS_UPDATE"), least=0.6).is_active


def test_signs_of_the_last_tier_alone_confirm_nothing() -> None:
    found = assessed(seen("MESSAGE_QUEUE"), seen("WORKSPACE_ACCESS"), least=0.1)
    assert (found.is_active, found.validation_passed) == (False, False)
    assert "none of tier 1 or 2" in found.reasons


def test_signs_more_than_a_day_apart_do_not_confirm_each_other() -> None:
    found = assessed(seen("GIT_COMMIT"), seen("TEST_EXECUTION", 24 * 60 + 2), lookback=3000)
    assert (found.is_active, found.validation_passed) == (False, False)
    assert assessed(seen("GIT_COMMIT"), seen("TEST_EXECUTION", 24 * 60), lookback=3000).is_active


def test_a_time_in_the_future_proves_nothing() -> None:
    found = assessed(seen("GIT_COMMIT", -30), seen("STATUS_UPDATE", 10))
    assert [one.source for one in found.signals] == ["STATUS_UPDATE"]
    assert found.inactivity_minutes == 10
    assert "in the future" in found.passed_over[0]
    assert assessed(seen("GIT_COMMIT", -1)).inactivity_minutes == 0


def test_the_newest_comes_first_and_tells_how_long_it_was_quiet() -> None:
    found = assessed(seen("TEST_EXECUTION", 20), seen("GIT_COMMIT", 5), seen("STATUS_UPDATE", 9))
    assert [one.source for one in found.signals] == [
        "GIT_COMMIT",
        "STATUS_UPDATE",
        "TEST_EXECUTION",
    ]
    assert (found.inactivity_minutes, found.last_activity) == (5, NOW - timedelta(minutes=5))


PROMPT = "[C2A] Inactivity detected. Resume work at once. #no-reply"


@pytest.mark.parametrize("pattern", NOISE_PATTERNS)
def test_each_pattern_is_noise_in_any_case(pattern: str) -> None:
    assert is_resumer_prompt(f"Attention: {pattern.upper()} for agent 7")
    assert not assessed(seen("INBOX_PROCESSING", message=f"please read {pattern}")).signals


@pytest.mark.parametrize(
    ("message", "noise"),
    [
        (PROMPT, True),
        (f"> {PROMPT}", True),
        (f"```\n{PROMPT}\n```", True),
        (f'Acknowledged: "{PROMPT}"', True),
        (f"Fixed the parser after this came in:\n> {PROMPT}", False),
        (f"Added a test that sends `{PROMPT}` and counts the replies", False),
        ("ACK", True),
        ("Roger that, resuming now!", True),
        ("OK, working on it.", True),
        ("Understood, I’ll continue.", True),
        ("Tests pass: 14 passed, 0 failed.", False),
        ("Working on the login form", False),
        ("Working on the status message system update", False),
        ("fixed resumer.py, 12 tests pass, committed", False),
        ("The resumer says: go on", True),
        ("", False),
        ("   ", False),
        ("…!?", True),
    ],
)
def test_what_is_noise(message: str, noise: bool) -> None:
    assert is_noise(message) is noise


def test_a_quoted_prompt_is_no_prompt_and_no_activity() -> None:
    assert not is_resumer_prompt(f"> {PROMPT}")
    assert not assessed(seen("DEVLOG_CREATED", message=f"> {PROMPT}")).signals


def test_patterns_can_be_chosen() -> None:
    assert is_resumer_prompt("wake up, agent", ["wake up"])
    assert not is_resumer_prompt(PROMPT, ["wake up"])
    assert not is_resumer_prompt("anything", [""])


@pytest.mark.parametrize("words", ["ack " * 12, "thanks"])
def test_an_acknowledgement_is_short(words: str) -> None:
    assert is_acknowledgement(words)
    assert not is_acknowledgement("ack " * 13)


@pytest.mark.parametrize(
    ("event", "progress"),
    [
        ({"type": "task_completed"}, True),
        ({"type": "work"}, True),
        ({"type": "stall-recovery"}, False),
        ({"type": "git_push", "message": "pushed 2 commits"}, True),
        ({"event": "validation", "status": "ok"}, True),
        ({"type": "heartbeat"}, False),
        ({"event_type": "Resume-Prompt", "message": "go on"}, False),
        ({"type": "message", "message": "ACK"}, False),
        ({"type": "message", "message": PROMPT}, False),
        ({"type": "message", "message": "renamed the module", "sender": "stall-recovery"}, False),
        ({"message": "renamed the module"}, True),
        ({"message": "  "}, False),
        ({}, False),
        ({"type": 7, "message": ["no", "text"]}, False),
    ],
)
def test_what_is_meaningful_progress(event: dict[str, object], progress: bool) -> None:
    assert is_meaningful_progress(event) is progress


SIGNALS = st.builds(
    seen, st.sampled_from(sorted(SOURCES)), st.floats(-5000, 5000), st.text(max_size=40)
)


@given(st.lists(SIGNALS, max_size=12), st.floats(1, 5000))
def test_an_active_agent_has_fresh_signs_that_can_be_trusted(
    signals: list[Signal], lookback: float
) -> None:
    found = assessed(*signals, lookback=lookback)
    assert len(found.signals) + len(found.passed_over) == len(signals)
    assert 0 <= found.confidence <= 0.9
    if found.is_active:
        assert found.inactivity_minutes is not None
        assert found.inactivity_minutes <= lookback
        assert any(one.tier in (1, 2) for one in found.signals)
        assert found.confidence >= 0.5


@given(st.lists(SIGNALS, max_size=8), SIGNALS)
def test_one_more_tier_1_sign_never_lowers_the_confidence(
    signals: list[Signal], more: Signal
) -> None:
    fresh = seen("PROCESS_PROGRESS", 0)
    assert assessed(*signals, fresh).confidence >= assessed(*signals).confidence
    assert assessed(*signals, more, fresh).confidence >= 0.7


@pytest.mark.parametrize(
    ("hours", "stale", "active"),
    [
        (0, "fresh", "fresh"),
        (1.99, "fresh", "fresh"),
        (2, "warning", "warning"),
        (5.99, "warning", "warning"),
        (6, "critical", "warning"),
        (12, "critical", "warning"),
        (12.01, "auto_resume", "warning"),
        (1000, "auto_resume", "warning"),
    ],
)
def test_activity_stops_the_escalation(hours: float, stale: str, active: str) -> None:
    age = hours * 60
    assert category(age, is_active=False, ended=False) == stale
    assert category(age, is_active=None, ended=False) == stale
    assert category(age, is_active=True, ended=False) == active
    assert category(age, is_active=True, ended=True) == "ended"
