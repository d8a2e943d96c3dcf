"""Collect signs from what an agent writes: reports to guard, events, claims, its status file, devlogs, inbox, queues."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from guard.activity import foreign_json
from guard.activity.file_patterns import matching_files, newest_first
from guard.activity.subject import AgentSubject, PartialTrouble, Sign
from guard.core.activity.noise import is_acknowledgement, is_meaningful_progress, own_words
from guard.system.foreign_files import read_beginning

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
    """Events of the agent in files that other programs write, as far as they show work."""
    for path, event in _objects_naming(subject, subject.settings.event_files, foreign_json.ACTORS):
        if isinstance(event, PartialTrouble):
            yield event
            continue
        seconds = foreign_json.seconds_in(event, subject.now_seconds)
        if seconds is not None and is_meaningful_progress(event):
            detail = f"{path.name}: {event.get('type') or event.get('event') or 'event'}"
            yield subject.signal("TELEMETRY_EVENT", seconds, detail, foreign_json.text_in(event))


def claims(subject: AgentSubject) -> Iterator[Sign]:
    """Tasks that the agent claimed, in the plan or in documents that name it with a time."""
    for claim in subject.claims:
        yield subject.signal("CONTRACT_CLAIMED", claim.seconds, claim.detail, claim.message)
    for path, found in _objects_naming(
        subject, subject.settings.contract_files, foreign_json.HOLDERS
    ):
        if isinstance(found, PartialTrouble):
            yield found
            continue
        seconds = foreign_json.seconds_in(found, subject.now_seconds)
        if seconds is not None:
            yield subject.signal(
                "CONTRACT_CLAIMED", seconds, f"{path.name}: claimed", foreign_json.text_in(found)
            )


def queue(subject: AgentSubject) -> Iterator[Sign]:
    for path, message in _objects_naming(
        subject, subject.settings.queue_files, foreign_json.ACTORS
    ):
        if isinstance(message, PartialTrouble):
            continue  # A queue changes all the time, and may be read half written.
        seconds = foreign_json.seconds_in(message, subject.now_seconds)
        if seconds is not None:
            yield subject.signal("MESSAGE_QUEUE", seconds, path.name, foreign_json.text_in(message))


def _objects_naming(
    subject: AgentSubject, patterns: str, keys: tuple[str, ...]
) -> Iterator[tuple[Path, dict[str, Any] | PartialTrouble]]:
    """The objects in the newest files that name the agent, up to `most_events` of each file."""
    for path, status in newest_first(matching_files(subject, patterns), _MOST_FILES):
        try:
            found = subject.shared.objects_by_name(path, status.st_size, keys)
        except foreign_json.NoDocument as error:
            yield path, PartialTrouble(str(error))
            continue
        ours = found.get(subject.agent.agent_id.casefold(), ())
        yield from ((path, item) for item in islice(ours, subject.settings.most_events))


def status_file(subject: AgentSubject) -> Iterator[Sign]:
    for path, status in matching_files(subject, subject.settings.status_files):
        try:
            found = foreign_json.read_document(path, status.st_size)
        except foreign_json.NoDocument as error:
            yield PartialTrouble(str(error))
            continue
        if not isinstance(found, dict):
            yield PartialTrouble(f"{path.name} is not a JSON object")
        elif words := _words_of(found):
            seconds = _status_time(found, status)
            yield subject.signal("STATUS_UPDATE", seconds, f"{path.name} says something", words)


def last_status_time(subject: AgentSubject) -> float | None:
    """When the agent last wrote its status file, in seconds since the epoch, whatever the file says."""
    times = []
    for path, status in matching_files(subject, subject.settings.status_files):
        try:
            times.append(_status_time(foreign_json.read_document(path, status.st_size), status))
        except foreign_json.NoDocument:
            times.append(status.st_mtime)
    return max(times, default=None)


def _status_time(found: Any, status: os.stat_result) -> float:
    """The time that the file states, but none after the file was written."""
    stated = foreign_json.exact_seconds_in(found) if isinstance(found, dict) else None
    return status.st_mtime if stated is None else min(stated, status.st_mtime)


def _words_of(found: dict[str, Any]) -> str:
    # A bare word for its state says nothing of the work, nor does an acknowledgement.
    parts = [found.get(key) for key in _CONTENT_KEYS]
    inner = [item for part in parts if isinstance(part, list) for item in part]
    texts = [text for text in (*parts, *inner) if isinstance(text, str)]
    words = "\n".join(text for text in texts if not is_acknowledgement(own_words(text)))
    return words[:_MOST_WORDS] if len(words.split()) > 1 else ""


def devlogs(subject: AgentSubject) -> Iterator[Sign]:
    for path, status in newest_first(
        matching_files(subject, subject.settings.devlog_files), _MOST_FILES
    ):
        words = read_beginning(path, _MOST_WORDS) or b""
        yield subject.signal(
            "DEVLOG_CREATED", status.st_mtime, path.name, words.decode(errors="replace")
        )


def inbox(subject: AgentSubject) -> Iterator[Sign]:
    # Moving a file to the folder of processed messages changes its ctime, not its mtime.
    for path, status in matching_files(subject, subject.settings.inbox_files):
        yield subject.signal("INBOX_PROCESSING", status.st_ctime, f"{path.parent.name}/{path.name}")


def reports(subject: AgentSubject) -> Iterator[Sign]:
    # Being spawned is no activity of the agent, nor is what guard found out about it.
    for report in subject.reports:
        yield subject.signal("TELEMETRY_EVENT", report.seconds, report.detail, report.message)
