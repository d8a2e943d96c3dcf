"""What comes back when a session is asked how things stand: an answer, noise that looks like one, or a program that fails.

All of it goes through the product's own reading: `extract` for what was said, `failure_of` for what a program left behind.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Literal

from guard.core.probe.answer import LASTING, BadAnswer, ProbeFailure, ProbeResult, extract_answer
from guard.probe.attempt import classify_failure
from guard.system.processes import Finished

Status = Literal["complete", "waiting", "working"]
Fails = Literal["timeout", "crashed", "overloaded", "limited", "no_session", "auth", "no_cli"]

_OLD_NONCE = "00000000deadbeef"
_LIMIT = "You've hit your 5-hour limit · resets {at} (UTC)"


@dataclass(frozen=True)
class Told:
    """What the session says of itself."""

    status: Status
    helpers: bool = False
    pending: tuple[str, ...] = ()
    more: bool = False
    commits: int = 0

    def document(self, nonce: str) -> dict[str, Any]:
        return {
            "nonce": nonce,
            "status": self.status,
            "message": f"I am {self.status}.",
            "agents_active": self.helpers,
            "agents_details": "one runs the tests" if self.helpers else "",
            "tasks_completed": ["1.1"],
            "tasks_pending": list(self.pending),
            "commits_made": self.commits,
            "should_continue": self.more,
            "next_action": "",
        }


def asked(random: Random, told: Told) -> ProbeResult:
    """A probe that gets this answer, in one of the ways in which models write JSON."""
    nonce = f"{random.getrandbits(64):016x}"
    text = random.choice(_SPELLINGS)(json.dumps(told.document(nonce)))
    return _read(text.encode(), nonce)


def noise(random: Random) -> ProbeResult:
    """A probe that gets something else than an answer, which mostly speaks of being complete."""
    nonce = f"{random.getrandbits(64):016x}"
    return _read(random.choice(_NOISES)(nonce), nonce)


def fails(random: Random, failure: Fails, now: datetime) -> ProbeResult:
    """A probe whose program fails."""
    if failure in ("timeout", "no_cli"):
        named: ProbeFailure = "timeout" if failure == "timeout" else "no_cli"
        return _result(failure=named, detail=failure)
    finished = random.choice(_PROGRAMS[failure])(now)
    found, detail, retry_at = classify_failure(finished, "claude", now)
    return _result(failure=found, detail=detail, retry_at=retry_at)


def _read(output: bytes, nonce: str) -> ProbeResult:
    try:
        answer = extract_answer(output, nonce)
    except BadAnswer as error:
        return _result(failure="unreadable", detail=str(error))
    return _result(answer=answer, detail=f"says {answer.status}")


def _result(**known: Any) -> ProbeResult:
    failure = known.get("failure")
    plain: dict[str, Any] = {
        "answer": None,
        "failure": None,
        "lasting": failure in LASTING,
        "retry_at": None,
        "agent": "claude",
        "session": "session-1",
        "elapsed_seconds": 3.0,
        "cost_usd": None,
        "tokens": 400,
    }
    return ProbeResult(**{**plain, **known})


_SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: json.dumps(json.loads(text), indent=2),
    lambda text: f"```json\n{text}\n```",
    lambda text: f"Here is how things stand:\n\n{text}\n\nTell me if you need more.",
    lambda text: f"I looked at {{everything}} first.\n```\n{text}\n```\n",
)


def _said(nonce: str, **fields: Any) -> str:
    return json.dumps({"nonce": nonce, "status": "complete", **fields})


_NOISES: tuple[Callable[[str], bytes], ...] = (
    lambda _nonce: b"",
    lambda _nonce: b"Everything is complete. All tests pass and the work is committed.",
    lambda _nonce: b'The status is "complete".',
    lambda nonce: f"{_said(nonce)}\n{_said(nonce, status='working')}".encode(),
    lambda nonce: f"{_said(nonce)} {_said(nonce)}".encode(),
    lambda _nonce: _said(_OLD_NONCE).encode(),
    lambda _nonce: json.dumps({"status": "complete"}).encode(),
    lambda nonce: _said(nonce, status="done").encode(),
    lambda nonce: _said(nonce, agents_active="no").encode(),
    lambda nonce: _said(nonce, tasks_pending="none").encode(),
    lambda nonce: _said(nonce)[:-1].encode(),
    lambda nonce: _said(nonce).replace('"', "'").encode(),
    lambda nonce: (_said(nonce)[:-1] + ', "status": "working"}').encode(),
    lambda nonce: ('{"a":' * 200 + _said(nonce) + "}" * 200).encode(),
    lambda nonce: _said(nonce).encode("utf-16"),
    lambda nonce: b"\xff" + _said(nonce).encode(),
)


def _envelope(text: str, **fields: Any) -> bytes:
    result = {"type": "result", "subtype": "success", "is_error": True, "session_id": "session-1"}
    return json.dumps({**result, "result": text, **fields}).encode() + b"\n"


def _overloaded(_now: datetime) -> Finished:
    text = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}'
    return Finished(1, _envelope(text, terminal_reason="api_error", api_error_status=529), b"")


def _limited(now: datetime) -> Finished:
    text = _LIMIT.format(at=f"{(now.hour + 2) % 24}:30")
    more = {"terminal_reason": "api_error", "api_error": "usage_limit_reached"}
    return Finished(1, _envelope(text, api_error_status=429, **more), b"")


_PROGRAMS: dict[str, tuple[Callable[[datetime], Finished], ...]] = {
    "overloaded": (
        _overloaded,
        lambda _now: Finished(1, b"", b"API Error: Connection error.\n"),
        lambda _now: Finished(1, _envelope("API Error: 503", api_error_status=503), b""),
    ),
    "limited": (_limited,),
    "no_session": (
        lambda _now: Finished(1, b"", b"No conversation found with session ID: session-1\n"),
    ),
    "auth": (lambda _now: Finished(1, _envelope("Not logged in · Please run /login"), b""),),
    "crashed": (
        lambda _now: Finished(-11, b"", b""),
        lambda _now: Finished(1, b"", b"TypeError: cannot read properties of undefined\n"),
    ),
}
