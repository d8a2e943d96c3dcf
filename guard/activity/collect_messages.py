"""What the agent wrote for others: events, claims, its status, devlogs, its inbox, queues."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from guard.activity.file_patterns import matching_files, newest_first
from guard.activity.foreign_json import (
    ACTORS,
    HOLDERS,
    NoDocument,
    exact_seconds_in,
    read_document,
    seconds_in,
    text_in,
)
from guard.activity.subject import AgentSubject, PartialTrouble, Sign
from guard.core.activity.noise import is_acknowledgement, is_meaningful_progress, own_words
from guard.system.bounded_walk import contents

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


def events(subject: AgentSubject) -> Iterator[Sign]:
    """Events of the agent in files that others write; only those that are work."""
    for path, event in _objects_naming(subject, subject.settings.event_files, ACTORS):
        if isinstance(event, PartialTrouble):
            yield event
            continue
        seconds = seconds_in(event, subject.now_seconds)
        if seconds is not None and is_meaningful_progress(event):
            detail = f"{path.name}: {event.get('type') or event.get('event') or 'event'}"
            yield subject.signal("TELEMETRY_EVENT", seconds, detail, text_in(event))


def claims(subject: AgentSubject) -> Iterator[Sign]:
    """Tasks that the agent claimed: from the coordinator, and in documents that say so and when."""
    for claim in subject.claims:
        yield subject.signal("CONTRACT_CLAIMED", claim.seconds, claim.detail, claim.message)
    for path, found in _objects_naming(subject, subject.settings.contract_files, HOLDERS):
        if isinstance(found, PartialTrouble):
            yield found
            continue
        seconds = seconds_in(found, subject.now_seconds)
        if seconds is not None:
            yield subject.signal(
                "CONTRACT_CLAIMED", seconds, f"{path.name}: claimed", text_in(found)
            )


def queue(subject: AgentSubject) -> Iterator[Sign]:
    """Messages of its own in a queue."""
    for path, message in _objects_naming(subject, subject.settings.queue_files, ACTORS):
        if isinstance(message, PartialTrouble):
            continue  # A queue is written all the time, and may be caught half written.
        seconds = seconds_in(message, subject.now_seconds)
        if seconds is not None:
            yield subject.signal("MESSAGE_QUEUE", seconds, path.name, text_in(message))


def _objects_naming(
    subject: AgentSubject, patterns: str, keys: tuple[str, ...]
) -> Iterator[tuple[Path, dict[str, Any] | PartialTrouble]]:
    """The objects in the newest files that name the agent; so many of each, the newest lines first."""
    for path, status in newest_first(matching_files(subject, patterns), _MOST_FILES):
        try:
            found = subject.shared.naming(path, status.st_size, keys)
        except NoDocument as error:
            yield path, PartialTrouble(str(error))
            continue
        ours = found.get(subject.agent.agent_id.casefold(), ())
        yield from ((path, one) for one in islice(ours, subject.settings.most_events))


def status_file(subject: AgentSubject) -> Iterator[Sign]:
    """Its status file, if that says something; the time that it tells, but never one after the file was written."""
    for path, status in matching_files(subject, subject.settings.status_files):
        try:
            found = read_document(path, status.st_size)
        except NoDocument as error:
            yield PartialTrouble(str(error))
            continue
        if not isinstance(found, dict):
            yield PartialTrouble(f"{path.name} is no object")
        elif said := _words_of(found):
            seconds = _status_time(found, status)
            yield subject.signal("STATUS_UPDATE", seconds, f"{path.name} says something", said)


def last_status_time(subject: AgentSubject) -> float | None:
    """When it last wrote its status file, whatever that says, in seconds since the epoch."""
    times = []
    for path, status in matching_files(subject, subject.settings.status_files):
        try:
            times.append(_status_time(read_document(path, status.st_size), status))
        except NoDocument:
            times.append(status.st_mtime)
    return max(times, default=None)


def _status_time(found: Any, status: os.stat_result) -> float:
    """The time that the file tells, but never one after it was written."""
    told = exact_seconds_in(found) if isinstance(found, dict) else None
    return status.st_mtime if told is None else min(told, status.st_mtime)


def _words_of(found: dict[str, Any]) -> str:
    """What the agent says of its work; a bare word for its state is nothing, with an acknowledgement or without."""
    parts = [found.get(key) for key in _CONTENT_KEYS]
    inner = [one for part in parts if isinstance(part, list) for one in part]
    texts = [text for text in (*parts, *inner) if isinstance(text, str)]
    said = "\n".join(text for text in texts if not is_acknowledgement(own_words(text)))
    return said[:_MOST_WORDS] if len(said.split()) > 1 else ""


def devlogs(subject: AgentSubject) -> Iterator[Sign]:
    """What it wrote for people; a log that only quotes or acknowledges is noise."""
    for path, status in newest_first(
        matching_files(subject, subject.settings.devlog_files), _MOST_FILES
    ):
        words = contents(path, _MOST_WORDS) or b""
        yield subject.signal(
            "DEVLOG_CREATED", status.st_mtime, path.name, words.decode(errors="replace")
        )


def inbox(subject: AgentSubject) -> Iterator[Sign]:
    """Messages that it has taken from its inbox: who moves a file there changes its status, not its contents."""
    for path, status in matching_files(subject, subject.settings.inbox_files):
        yield subject.signal("INBOX_PROCESSING", status.st_ctime, f"{path.parent.name}/{path.name}")


def reports(subject: AgentSubject) -> Iterator[Sign]:
    """What it reported; being spawned is no activity of its own, nor is what guard found out of it."""
    for report in subject.reports:
        yield subject.signal("TELEMETRY_EVENT", report.seconds, report.detail, report.message)
