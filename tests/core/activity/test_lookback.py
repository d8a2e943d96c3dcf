"""How far guard looks back for an agent: its rhythm, lessons, settings, and which of them decides."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.activity.assess import ActivityTerms, Signal, assess
from guard.core.activity.lookback import (
    AgentTerms,
    LookbackInput,
    Rhythm,
    lookback,
    parse_agent_terms,
    rhythm,
    validate_agent_terms,
)

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
BURSTY = Rhythm(pattern="bursty", gaps=40, usual_minutes=2, quiet_minutes=85)


def after(pauses: Iterable[float]) -> list[datetime]:
    """Times of signs with these pauses, in minutes, between them."""
    times = [NOW]
    for pause in pauses:
        times.append(times[-1] + timedelta(minutes=pause))
    return times


BURST = [2.0, 1, 3, 2, 1]


@pytest.mark.parametrize(
    ("pauses", "pattern", "quiet"),
    [
        pytest.param([], "too_few", None, id="nothing known"),
        pytest.param([5] * 7, "too_few", None, id="seven pauses"),
        pytest.param([5] * 8, "steady", None, id="eight short pauses"),
        pytest.param([30] * 8, "steady", 30, id="a sign every half hour"),
        pytest.param([70] * 20, "steady", 70, id="slow and regular"),
        pytest.param([*BURST, 80] * 5, "bursty", 80, id="bursts, then quiet"),
        pytest.param([*BURST, 80] * 3, "steady", None, id="quiet too seldom to tell"),
        pytest.param([*BURST, 40, *BURST, 90] * 6, "bursty", 90, id="quiet of two lengths"),
        pytest.param(
            [*BURST, 40] * 19 + [*BURST, 470], "bursty", 40, id="one that is an exception"
        ),
        pytest.param([*BURST, 600] * 9, "steady", None, id="nights are no rhythm"),
        pytest.param([0.001] * 500, "steady", None, id="very many at once"),
    ],
)
def test_the_rhythm_of_an_agent(pauses: list[float], pattern: str, quiet: float | None) -> None:
    found = rhythm(after(pauses), 480)
    assert (found.pattern, found.quiet_minutes) == (pattern, quiet)


def test_a_pause_that_a_prompt_ended_is_not_the_agents() -> None:
    pauses = [*BURST, 80, *BURST, 300] * 4
    times = after(pauses)
    assert rhythm(times, 480).quiet_minutes == 300
    stalls = [one for one, pause in zip(times, pauses, strict=False) if pause == 300]
    found = rhythm(times, 480, [one + timedelta(minutes=290) for one in stalls])
    assert found.quiet_minutes == 80


def test_the_order_and_repetition_of_signs_do_not_matter() -> None:
    times = after([*BURST, 80] * 5)
    assert rhythm([*reversed(times), *times], 480) == rhythm(times, 480)


@pytest.mark.parametrize(
    ("known", "minutes", "origin"),
    [
        pytest.param(LookbackInput(60), 60, "general", id="nothing else is known"),
        pytest.param(LookbackInput(60, rhythm=BURSTY), 111, "adapted", id="its rhythm"),
        pytest.param(LookbackInput(200, rhythm=BURSTY), 200, "general", id="which never shortens"),
        pytest.param(
            LookbackInput(60, most=100, rhythm=BURSTY), 100, "adapted", id="nor goes too far"
        ),
        pytest.param(
            LookbackInput(60, most=30, rhythm=BURSTY), 60, "general", id="a most below the least"
        ),
        pytest.param(
            LookbackInput(60, learned=150, rhythm=BURSTY), 150, "learned", id="a false alarm"
        ),
        pytest.param(
            LookbackInput(60, learned=90, rhythm=BURSTY), 111, "adapted", id="the longer of both"
        ),
        pytest.param(LookbackInput(60, learned=900), 480, "learned", id="and it is bounded too"),
        pytest.param(LookbackInput(60, learned=30), 60, "general", id="and never shortens either"),
        pytest.param(
            LookbackInput(60, setting=30, learned=150, rhythm=BURSTY),
            30,
            "agent_terms",
            id="a setting",
        ),
        pytest.param(
            LookbackInput(60, option=5, setting=30, learned=150, rhythm=BURSTY),
            5,
            "option",
            id="an option",
        ),
    ],
)
def test_who_decides(known: LookbackInput, minutes: float, origin: str) -> None:
    found = lookback(known)
    assert (found.minutes, found.origin) == (minutes, origin)


def test_a_rhythm_that_is_not_known_changes_nothing() -> None:
    for quiet in (None, 20.0):
        known = Rhythm(pattern="steady", gaps=9, usual_minutes=5, quiet_minutes=quiet)
        assert lookback(LookbackInput(60, rhythm=known)).origin == "general"


def test_what_is_old_for_others_is_not_old_for_a_slow_agent() -> None:
    """A single commit of 85 min ago: 0.49 by the general figures, too little however far one looks back."""
    commit = Signal(source="GIT_COMMIT", at=NOW - timedelta(minutes=85), detail="seen")
    back = lookback(LookbackInput(60, rhythm=BURSTY))
    general = assess([commit], NOW, ActivityTerms(lookback_minutes=back.minutes))
    assert (general.confidence, general.is_active) == (0.49, False)
    own = assess([commit], NOW, ActivityTerms(lookback_minutes=back.minutes, pace=back.pace))
    assert (own.confidence, own.is_active) == (0.595, True)
    assert lookback(LookbackInput(60, option=240)).pace == 1


def test_terms_of_single_agents() -> None:
    text = "builder-1: lookback_minutes=180 min_confidence=0.6; docs: lookback_minutes=30.5"
    assert parse_agent_terms(text) == {
        "builder-1": AgentTerms(180, 0.6),
        "docs": AgentTerms(30.5, None),
    }
    assert parse_agent_terms("") == {}
    assert validate_agent_terms(f"{text};") == f"{text};"


@pytest.mark.parametrize(
    "text",
    [
        "builder",
        "builder:",
        "builder: 60",
        "builder: lookback=60",
        "builder: lookback_minutes=-1",
        "builder: lookback_minutes=0",
        "builder: lookback_minutes=1e9",
        "builder: lookback_minutes=99999999",
        "builder: min_confidence=1.5",
        "builder: min_confidence=nan",
        "builder: min_confidence=0.5 min_confidence=0.6",
        "a: min_confidence=0.5; a: lookback_minutes=5",
        "../a: lookback_minutes=60",
    ],
)
def test_terms_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"terms|between"):
        validate_agent_terms(text)


@given(
    st.lists(st.floats(0, 2000), max_size=60),
    st.floats(1, 500),
    st.floats(1, 1000),
    st.none() | st.floats(0, 5000),
)
def test_no_history_goes_below_the_general_or_beyond_the_most(
    pauses: list[float], general: float, most: float, learned: float | None
) -> None:
    found = lookback(
        LookbackInput(general, most, learned=learned, rhythm=rhythm(after(pauses), most))
    )
    assert general <= found.minutes <= max(most, general)
    assert found.pace >= 1
