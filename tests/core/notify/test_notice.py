"""Which notices follow from a verdict, and what is taken out of their texts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from guard.core.check.report import BreakerLine, CheckReport
from guard.core.notify.notice import Notice, make_safe, notices_of_verdict

NOW = datetime(2026, 11, 16, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def kinds(
    status: str = "complete",
    *,
    refuted: int = 0,
    state: str = "closed",
    retry_at: datetime | None = None,
    since: datetime | None = None,
    minutes: float = 60,
) -> list[str]:
    fields: dict[str, Any] = {"state": state, "streak": 0, "reason": None, "retry_at": None}
    line = BreakerLine.model_construct(**fields)
    given: dict[str, Any] = {"status": status, "reason": "x", "detail": "y", "run": "r1"}
    report = CheckReport.model_construct(**given, iteration=2, breaker=line, retry_at=retry_at)
    return [notice.kind for notice in notices_of_verdict(report, refuted, since, NOW, minutes)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"status": "timeout"}, []),
        ({"status": "blocked"}, ["blocked"]),
        ({"status": "timeout", "state": "open"}, ["breaker"]),
        ({"status": "blocked", "state": "open"}, ["blocked", "breaker"]),
        ({"status": "refuted", "refuted": 1}, []),
        ({"status": "refuted", "refuted": 2}, ["refuted"]),
        ({"status": "refuted", "refuted": 3}, []),
        ({"status": "limited", "retry_at": NOW + HOUR / 2}, []),
        ({"status": "limited", "retry_at": NOW + 2 * HOUR}, ["limit"]),
        ({"status": "limited", "retry_at": NOW + HOUR / 2, "minutes": 5}, ["limit"]),
        ({"status": "limited"}, []),
        ({"status": "limited", "since": NOW - HOUR / 2}, []),
        ({"status": "limited", "since": NOW - 2 * HOUR}, ["limit"]),
    ],
)
def test_a_verdict_calls_for_these_notices(given: dict[str, Any], expected: list[str]) -> None:
    assert kinds(**given) == expected


def test_secrets_and_control_characters_are_taken_out() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    notice = Notice(kind="blocked", about="a", title="x\x1b[31m", text=f"use {token}?\nnow")
    safe = make_safe(notice, "pro\x07ject", NOW)
    assert token not in safe.model_dump_json()
    assert "\x1b" not in safe.title
    assert safe.title == "pro\\x07ject: x\\x1b[31m"
    assert safe.text.startswith("use [")
    assert safe.text.endswith("]? now")


def test_the_same_notice_has_the_same_event() -> None:
    def event_id(about: str) -> str:
        return Notice(kind="blocked", about=about, title="t", text="x").event_id

    assert event_id("r1 1") == event_id("r1 1") != event_id("r1 2")
