"""Quoted prompts and acknowledgements are no activity, in whichever file agents leave them."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.activity.collect import collect
from guard.activity.subject import AgentSubject, ReportedWord
from guard.core.activity.assess import ActivityTerms, Assessment, assess
from guard.core.activity.plan_events import Claim
from tests.activity.conftest import Look
from tests.support import write

PROMPT = "[C2A] STALL-RECOVERY: inactivity detected. #NO-REPLY"
Place = Callable[[Path, str], dict[str, object]]


def status(root: Path, message: str) -> dict[str, object]:
    write(root / "agent_workspaces/a1/status.json", json.dumps({"message": message}))
    return {}


def devlog(root: Path, message: str) -> dict[str, object]:
    write(root / "devlogs/a1.md", message)
    return {}


def object_in(path: str, **names: str) -> Place:
    def place(root: Path, message: str) -> dict[str, object]:
        told = {**names, "type": "note", "timestamp": time.time(), "message": message}
        write(root / path, json.dumps(told))
        return {}

    return place


def report(_root: Path, message: str) -> dict[str, object]:
    return {"reports": (ReportedWord(time.time(), "reported working", message),)}


def claim(_root: Path, message: str) -> dict[str, object]:
    return {"claims": (Claim(time.time(), "made a checkpoint", message),)}


PLACES: dict[str, Place] = {
    "STATUS_UPDATE": status,
    "DEVLOG_CREATED": devlog,
    "MESSAGE_QUEUE": object_in("message_queue/q.json", sender="a1"),
    "TELEMETRY_EVENT": object_in("runtime/activity/e.jsonl", agent="a1"),
    "CONTRACT_CLAIMED": object_in("contracts/c.json", claimed_by="a1"),
    "TELEMETRY_EVENT of guard": report,
    "CONTRACT_CLAIMED of guard": claim,
}


def assessed(subject: AgentSubject) -> Assessment:
    # The file of a devlog or a status is a changed file, too, where no setting says what it is.
    return assess(
        collect(subject, ActivityTerms(), all_sources=True).signals, subject.now, ActivityTerms()
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("message", "counts"),
    [
        (PROMPT, False),
        (f"> {PROMPT}", False),
        (f"```\n{PROMPT}\n```", False),
        (f'"{PROMPT}"', False),
        (f"> {PROMPT}\n\nOK, resuming now.", False),
        ("ACK", False),
        ("Understood, will continue.", False),
        ("Thanks, got it. Standing by!", False),
        (f"> {PROMPT}\n\nThe parser is written, 14 tests pass.", True),
        ("The parser is written, 14 tests pass.", True),
    ],
)
def test_only_what_says_something_of_its_own_counts(
    tmp_path: Path, subject: Look, place: str, message: str, counts: bool
) -> None:
    looked = subject(**PLACES[place](tmp_path, message))
    found = assessed(looked)
    sources = {one.source for one in found.signals}
    assert sources - {"WORKSPACE_ACCESS"} == ({place.partition(" ")[0]} if counts else set())
    assert found.is_active is (counts and place != "MESSAGE_QUEUE")
