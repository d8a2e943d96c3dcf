"""What the agent wrote for others: events, claims, its status, devlogs, its inbox, queues."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from guard.activity.documents import Unreadable, document, names, newest_lines, seconds_in, words_in
from guard.activity.matching import matching, newest_first
from guard.activity.subject import Subject
from guard.core.activity.assessment import Signal
from guard.core.activity.progress import is_meaningful_progress
from guard.tree import contents

_MOST_FILES = 50
_MOST_WORDS = 8192
_CONTENT_KEYS = (
    "current_task",
    "current_mission",
    "current_phase",
    "mission",
    "message",
    "status_message",
    "progress",
    "completed_tasks",
    "next_actions",
    "achievements",
    "status",
)


def events(subject: Subject) -> Iterator[Signal | None]:
    """Events of the agent in files that others write; only those that are work."""
    files = newest_first(matching(subject, subject.settings.event_files), _MOST_FILES)
    for path, _ in files:
        for event in newest_lines(path, subject.settings.most_events):
            seconds = seconds_in(event)
            if seconds is None or not names(event, subject.agent.agent_id):
                continue
            if is_meaningful_progress(event):
                detail = f"{path.name}: {event.get('type') or event.get('event') or 'event'}"
                yield subject.signal("TELEMETRY_EVENT", seconds, detail, words_in(event))


def claims(subject: Subject) -> Iterator[Signal | None]:
    """Tasks that the agent claimed, in documents that say so."""
    for path, status in newest_first(
        matching(subject, subject.settings.contract_files), _MOST_FILES
    ):
        for found in _objects(document(path, status.st_size)):
            if names(found, subject.agent.agent_id):
                seconds = seconds_in(found)
                detail = f"{path.name}: claimed"
                yield subject.signal(
                    "CONTRACT_CLAIMED", seconds or status.st_mtime, detail, words_in(found)
                )


def status_file(subject: Subject) -> Iterator[Signal | None]:
    """Its status file, if that says something; the time that it tells, but never one after the file was written."""
    for path, status in matching(subject, subject.settings.status_files):
        found = document(path, status.st_size)
        if not isinstance(found, dict):
            raise Unreadable(f"{path.name} is no object")
        said = _said(found)
        if said:
            seconds = _time(path, status)
            yield subject.signal("STATUS_UPDATE", seconds, f"{path.name} says something", said)


def told_at(subject: Subject) -> float | None:
    """When it last wrote its status file, whatever that says, in seconds since the epoch."""
    times = [
        _time(path, status) for path, status in matching(subject, subject.settings.status_files)
    ]
    return max(times, default=None)


def _time(path: Path, status: os.stat_result) -> float:
    """The time that the file tells, but never one after it was written."""
    try:
        found = document(path, status.st_size)
    except Unreadable:
        return status.st_mtime
    told = seconds_in(found) if isinstance(found, dict) else None
    return status.st_mtime if told is None else min(told, status.st_mtime)


def _said(found: dict[str, Any]) -> str:
    """What the agent says of its work; a bare word for its state is nothing."""
    parts = [found.get(key) for key in _CONTENT_KEYS]
    inner = [one for part in parts if isinstance(part, list) for one in part]
    words = " ".join(text for text in (*parts, *inner) if isinstance(text, str)).split()
    return " ".join(words)[:_MOST_WORDS] if len(words) > 1 else ""


def devlogs(subject: Subject) -> Iterator[Signal | None]:
    """What it wrote for people; a log that only quotes or acknowledges is noise."""
    for path, status in newest_first(matching(subject, subject.settings.devlog_files), _MOST_FILES):
        words = contents(path, _MOST_WORDS) or b""
        yield subject.signal(
            "DEVLOG_CREATED", status.st_mtime, path.name, words.decode(errors="replace")
        )


def inbox(subject: Subject) -> Iterator[Signal | None]:
    """Messages that it has taken from its inbox: who moves a file there changes its status, not its contents."""
    for path, status in matching(subject, subject.settings.inbox_files):
        yield subject.signal("INBOX_PROCESSING", status.st_ctime, f"{path.parent.name}/{path.name}")


def queue(subject: Subject) -> Iterator[Signal | None]:
    """Messages of its own in a queue."""
    for path, status in newest_first(matching(subject, subject.settings.queue_files), _MOST_FILES):
        with suppress(Unreadable):
            found = (
                newest_lines(path, subject.settings.most_events)
                if path.suffix == ".jsonl"
                else _objects(document(path, status.st_size))
            )
            for message in found:
                seconds = seconds_in(message)
                if seconds is not None and names(message, subject.agent.agent_id):
                    yield subject.signal("MESSAGE_QUEUE", seconds, path.name, words_in(message))


def _objects(found: object) -> Iterator[dict[str, Any]]:
    """The objects of a document that is one, a list of them, or has lists or maps of them."""
    if isinstance(found, dict):
        yield found
        for value in found.values():
            inner = value.values() if isinstance(value, dict) else value
            if isinstance(value, dict | list):
                yield from (one for one in inner if isinstance(one, dict))
    elif isinstance(found, list):
        yield from (one for one in found if isinstance(one, dict))
