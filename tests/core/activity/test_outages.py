"""Which common silence is an outage."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.activity.outages import LastSeen, OutageRules, find_outage

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def fleet(*minutes: float | None, working: int = 0) -> list[LastSeen]:
    """Silent agents by how long ago their last sign was, and some that are at work."""
    quiet = [_ago(f"a{n}", ago, is_active=False) for n, ago in enumerate(minutes)]
    return [*quiet, *(_ago(f"w{n}", 1, is_active=True) for n in range(working))]


def _ago(name: str, minutes: float | None, *, is_active: bool) -> LastSeen:
    at = None if minutes is None else NOW - timedelta(minutes=minutes)
    return LastSeen("T1", name, at, is_active)


@pytest.mark.parametrize(
    ("agents", "silent"),
    [
        pytest.param(fleet(), 0, id="no agents"),
        pytest.param(fleet(90, 90), 0, id="two are too few"),
        pytest.param(fleet(90, 91, 92), 3, id="three at once"),
        pytest.param(fleet(90, 95, 90), 3, id="as far apart as allowed"),
        pytest.param(fleet(90, 95.1, 90), 0, id="too far apart"),
        pytest.param(fleet(90, 91, 92, working=3), 3, id="half of those at work"),
        pytest.param(fleet(90, 91, 92, working=4), 0, id="less than half of those at work"),
        pytest.param(fleet(90, 91, 92, 600, 700, 800, 900), 3, id="stalled long before"),
        pytest.param(fleet(90, 91, 92, 120, 152), 5, id="quiet, but at work when it began"),
        pytest.param(fleet(90, 91, 92, 152.1), 3, id="silent already when it began"),
        pytest.param(fleet(90, 91, 92, 70, 75, 80, 85), 0, id="others went on after it"),
        pytest.param(fleet(None, None, None, None), 0, id="never a sign"),
        pytest.param(fleet(90, 91, None, None), 0, id="those without a sign do not count"),
        pytest.param(fleet(241, 242, 243), 0, id="it holds for a limited time"),
        pytest.param(fleet(239, 240, 241), 3, id="and for all of that"),
        pytest.param(fleet(-30, -30, -30), 0, id="times in the future"),
        pytest.param(fleet(80, 86, 92, 98, 104, 110), 0, id="one by one"),
    ],
)
def test_what_is_an_outage(agents: list[LastSeen], silent: int) -> None:
    found = find_outage(agents, NOW, OutageRules())
    assert len(found.agents if found else ()) == silent


def test_it_says_who_since_when_and_until_when() -> None:
    found = find_outage(fleet(91, 90, 93, working=1), NOW, OutageRules(hold_minutes=120))
    assert found is not None
    assert found.since == NOW - timedelta(minutes=90)
    assert found.until == NOW + timedelta(minutes=30)
    assert (
        found.has_agent("T1", "a2"),
        found.has_agent("T1", "w0"),
        found.has_agent("T2", "a2"),
    ) == (
        True,
        False,
        False,
    )
    assert found.summary == (
        "outage since 2026-01-31 10:30 UTC: 3 agents of 4 fell silent together (a2, a0, a1)"
    )


def test_many_are_named_in_part() -> None:
    found = find_outage(fleet(*[90] * 8), NOW, OutageRules())
    assert found is not None
    assert found.summary.endswith("(a0, a1, a2, a3, a4 and 3 more)")


@pytest.mark.parametrize(
    ("usual", "stalled", "silent"),
    [
        pytest.param(6, True, 4, id="quiet for more than twice as long as usual"),
        pytest.param(9, True, 0, id="quiet as it may be"),
        pytest.param(None, True, 0, id="of no known rhythm"),
        pytest.param(6, False, 3, id="and no agent is silent yet"),
    ],
)
def test_an_outage_shows_before_all_are_silent(
    usual: float | None, stalled: bool, silent: int
) -> None:
    at = NOW - timedelta(minutes=15)
    agents = [LastSeen("T1", f"a{n}", at, is_active=True, usual_minutes=usual) for n in range(3)]
    if stalled:
        agents.append(_ago("b1", 70, is_active=False))
    found = find_outage(agents, NOW, OutageRules())
    assert len(found.agents if found else ()) == silent


@pytest.mark.parametrize(
    ("rules", "silent"),
    [
        (OutageRules(), 3),
        (OutageRules(agents=4), 0),
        (OutageRules(share=0.8), 0),
        (OutageRules(within_minutes=1), 0),
        (OutageRules(hold_minutes=80), 0),
    ],
)
def test_each_rule_decides(rules: OutageRules, silent: int) -> None:
    found = find_outage(fleet(90, 91, 92, working=1), NOW, rules)
    assert len(found.agents if found else ()) == silent


@given(st.lists(st.floats(0, 1000), max_size=30), st.integers(0, 20))
def test_no_agent_at_work_is_in_an_outage_and_it_is_never_small(
    ages: list[float], working: int
) -> None:
    found = find_outage(fleet(*ages, working=working), NOW, OutageRules())
    if found is not None:
        assert not any(one.agent_id.startswith("w") for one in found.agents)
        assert len(found.agents) >= max(3, found.were_active / 2)
        assert found.since <= NOW < found.until


def test_it_explains_a_silence_until_the_agent_shows_itself_or_the_time_is_over() -> None:
    found = find_outage(fleet(90, 91, 92), NOW, OutageRules())
    assert found is not None
    lying, back = _ago("a1", 91, is_active=False), _ago("a2", 5, is_active=True)
    assert found.may_explain(lying, NOW)
    assert not found.may_explain(back, NOW)
    assert not found.may_explain(_ago("b1", 91, is_active=False), NOW)
    assert found.may_explain(lying, found.until - timedelta(seconds=1))
    assert not found.may_explain(lying, found.until)
