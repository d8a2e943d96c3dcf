"""When a limit ends, by the wordings that agents use."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from guard.core.classify.reset_times import (
    duration_seconds,
    reset_time,
    time_after,
    time_from_epoch,
)

NOW = datetime(2026, 11, 16, 2, 0, 30, tzinfo=UTC)
"""A Monday."""

WORDINGS = {
    "You've hit your 5-hour limit · resets 3:33am (UTC)": "16 03:33",
    "You've hit your limit · resets 7pm (America/New_York)": "17 00:00",
    "You've hit your limit · resets 9pm (America/New_York)": "16 02:00",
    "You've hit your session limit · resets 8:30pm (Asia/Tokyo)": "16 11:30",
    "5-hour limit reached ∙ resets 5am (Europe/Berlin)": "16 04:00",
    "5-hour limit reached - resets 1am": "17 01:00",
    "Session limit reached · resets 10am": "16 10:00",
    "You're out of extra usage · resets 9pm": "16 21:00",
    "You've hit your limit · resets 12am (UTC)": "17 00:00",
    "You've hit your limit · resets 12pm (UTC)": "16 12:00",
    "You've hit your limit · resets 12:30am (UTC)": "17 00:30",
    "Limit reached. Resets at 15:00 (Asia/Tokyo).": "16 06:00",
    "Limit reached, resets at 03:33 UTC": "16 03:33",
    "Limit reached, resets at 3 a.m. (UTC)": "16 03:00",
    "Opus weekly limit reached ∙ resets Nov 19, 5pm": "19 17:00",
    "You've hit your weekly limit · resets Nov 19 at 5pm (Europe/Berlin)": "19 16:00",
    "Weekly limit reached ∙ resets Nov 18": "19 00:00",
    "Weekly limit reached ∙ resets Thursday 9am (UTC)": "19 09:00",
    "Weekly limit reached ∙ resets Mon 1am (UTC)": "23 01:00",
    "Claude AI usage limit reached|1794800000": "16 03:33:20",
    "You’ve hit your usage limit. Upgrade or try again at 3:33 AM.": "16 03:33",
    "You've hit your usage limit. … or try again at Nov 18th, 2026 12:30 PM.": "18 12:30",
    "You've hit your usage limit. Try again Nov 18.": "19 00:00",
    "You've hit your usage limit. Try again in 2 hours 5 minutes.": "16 04:05:30",
    "… send a request to your admin or try again in 3 days 6 hours 57 minutes.": "19 08:57:30",
    "Please try again in 2 hours. Please review our Terms of Service": "16 04:00:30",
    "try again in about an hour": "16 03:00:30",
    "Your quota will reset after 12h34m16s.": "16 14:34:46",
    "Please retry in 34.5s": "16 02:01:04",
    "Please retry after 2733 seconds. (user_global_rate_limited:pro)": "16 02:46:03",
    '{"error": {"details": [{"retryDelay": "90s"}]}}': "16 02:02",
    "HTTP 429 Too Many Requests, retry-after: 120": "16 02:02:30",
    '"quotaResetTimeStamp": "2026-11-16T05:00:00Z"': "16 05:00",
    "Usage resets at 2026-11-16T07:00:00+02:00": "16 05:00",
    "Rate limited until 2026-11-17 08:00 UTC": "17 08:00",
    "5-hour limit resets 5am (UTC), weekly limit resets Nov 20, 5pm (UTC)": "20 17:00",
    "resets   3:33am\n(UTC)": "16 03:33",
    "You've hit your limit": None,
    "resets 5": None,
    "resets 13pm (UTC)": None,
    "resets 25:00 (UTC)": None,
    "resets 3:75am (UTC)": None,
    "resets Nov 31, 5pm": None,
    "resets Dec 24, 5pm": None,
    "try again in 9 days": None,
    "try again in 99999999999999999999 hours": None,
    "Claude AI usage limit reached|9999999999": None,
    "resets 2026-99-99T05:00:00Z": None,
    "resets 3pm (Mars/Base)": None,
    "resets 3pm (PST)": None,
    "resets 3pm (../../../etc/localtime)": None,
    "resets 3pm (/etc/localtime)": None,
    "resets 3pm (right/UTC)": None,
    "resets 3pm (America)": None,
    "resets 3pm (" + "A/" * 40 + ")": None,
    "resets 3pm PST": None,
    "resets 3pm pst": None,
    "resets 3:00 PM ET": None,
    "resets 3 a.m. CEST": None,
    "resets 3pm Pacific time": None,
    "resets 5am UTC-5": None,
    "resets 5am UTC+02:00": None,
    "resets 15:00 +02:00": None,
    "resets 5pm on Nov 18": None,
    "resets 5pm, Nov 18": None,
    "resets 5pm on 18 Nov": None,
    "resets 5pm on the 18th": None,
    "resets 5pm tomorrow": None,
    "resets 5pm on Thursday": None,
    "Rate limited until 2026-11-17 08:00 PST": None,
    "the log of 2026-11-16T05:00:00Z says so": None,
    "there are 3 hours left": None,
}


def spelled(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    assert (moment.year, moment.month, moment.tzinfo) == (2026, 11, UTC)
    return moment.strftime("%d %H:%M:%S" if moment.second else "%d %H:%M")


@pytest.mark.parametrize(("text", "expected"), WORDINGS.items(), ids=[w[:60] for w in WORDINGS])
def test_the_time_in_a_message(text: str, expected: str | None) -> None:
    now = NOW - timedelta(minutes=1) if "9pm (America" in text else NOW
    assert spelled(reset_time(text, now)) == expected


def test_a_time_without_a_zone_is_in_the_zone_of_the_caller() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=-5)))
    assert spelled(reset_time("try again at 3:33 AM.", there)) == "16 08:33"
    assert spelled(reset_time("try again at 3:33 AM (UTC).", there)) == "16 03:33"


ZONES = {
    "resets at 15:00 UTC": "16 15:00",
    "Try again at 15:00 GMT.": "16 15:00",
    "resets Nov 16 15:00 UTC": "16 15:00",
    "resets at 15:00 America/New_York": "16 20:00",
    "resets at 15:00Z": "16 15:00",
    "resets 3pm UTC": "16 15:00",
    "resets 3 pm UTC": "16 15:00",
    "resets 3pm Europe/Berlin": "16 14:00",
    "Rate limited until 2026-11-17 08:00 GMT": "17 08:00",
    "resets 3pm · progress saved": "16 20:00",
    "resets 3pm, monthly limit unchanged": "16 20:00",
}


@pytest.mark.parametrize(("text", "expected"), ZONES.items(), ids=ZONES)
def test_a_zone_without_brackets_is_the_one_that_counts(text: str, expected: str) -> None:
    assert spelled(reset_time(text, NOW.astimezone(timezone(timedelta(hours=-5))))) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-30, "16 03:33"), (0, "16 03:33"), (90, "16 03:33"), (150, "17 03:33"), (86000, "17 03:33")],
)
def test_a_time_that_has_just_passed_is_not_tomorrows(seconds: int, expected: str) -> None:
    now = datetime(2026, 11, 16, 3, 33, tzinfo=UTC) + timedelta(seconds=seconds)
    assert spelled(reset_time("resets 3:33am (UTC)", now)) == expected


def test_of_an_hour_that_comes_twice_the_second_counts() -> None:
    now = datetime(2026, 10, 31, 20, 0, tzinfo=UTC)
    found = reset_time("resets Nov 1, 1:30am (America/New_York)", now)
    assert found == datetime(2026, 11, 1, 6, 30, tzinfo=UTC)


def test_an_hour_that_does_not_come_is_the_one_after_it() -> None:
    now = datetime(2026, 3, 8, 4, 0, tzinfo=UTC)
    found = reset_time("resets 2:30am (America/New_York)", now)
    assert found == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)


def test_the_turn_of_the_year() -> None:
    now = datetime(2026, 12, 30, 12, 0, tzinfo=UTC)
    assert reset_time("resets Jan 2, 5pm", now) == datetime(2027, 1, 2, 17, tzinfo=UTC)
    now = datetime(2027, 1, 2, 12, 0, tzinfo=UTC)
    assert reset_time("resets Dec 31, 5pm", now) is None


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (1794800000, "16 03:33:20"),
        (1794800000000, "16 03:33:20"),
        (1794700000, "14 23:46:40"),
        (0, None),
        (-5, None),
        (1, None),
        (1e300, None),
        (float("nan"), None),
        (1899999999, None),
    ],
)
def test_the_time_in_a_field(seconds: float, expected: str | None) -> None:
    assert spelled(time_from_epoch(seconds, NOW)) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "16 02:00:30"), (90.5, "16 02:02"), (-1, None), (1e9, None)]
)
def test_the_delay_in_a_field(seconds: float, expected: str | None) -> None:
    assert spelled(time_after(seconds, NOW)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 hours 5 minutes", 7500),
        ("12h34m16s", 45256),
        ("1 day, 2 hrs and 3 mins", 93780),
        ("34.07s", 34.07),
        ("a minute", 60),
        ("soon", None),
        ("5 months", None),
    ],
)
def test_the_length_of_a_duration(text: str, expected: float | None) -> None:
    assert duration_seconds(text) == expected
