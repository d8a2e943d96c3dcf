"""Signs in files that agents write."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from guard.activity import collect_messages
from guard.activity.collect import collect
from guard.activity.foreign_json import MOST_BYTES
from guard.activity.subject import Collect, Collector
from guard.core.activity.assess import ActivityTerms, Signal
from guard.core.activity.sources import SourceName
from tests.activity.conftest import Look
from tests.support import write

NOW = time.time()


def found(collect: Collect, subject: Any) -> list[tuple[str, str]]:
    return [(one.source, one.detail) for one in collect(subject) if isinstance(one, Signal)]


def lines(*events: object) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def test_events_of_the_agent_that_are_work_count(tmp_path: Path, subject: Look) -> None:
    write(
        tmp_path / "runtime/activity/today.jsonl",
        lines(
            {"type": "task_completed", "agent": "a1", "timestamp": NOW - 60},
            {"type": "git_push", "agent_id": "A1", "ts": int((NOW - 50) * 1000)},
            {"type": "git_push", "agent": "a10", "timestamp": NOW},
            {"type": "heartbeat", "agent": "a1", "timestamp": NOW},
            {"type": "message", "agent": "a1", "timestamp": NOW, "message": "ACK"},
            {"type": "task_completed", "agent": "a1"},
            ["no", "object"],
        )
        + "{broken\n",
    )
    names = [detail for _, detail in found(collect_messages.events, subject())]
    assert names == ["today.jsonl: git_push", "today.jsonl: task_completed"]


def test_a_task_that_others_give_it_is_not_its_work(tmp_path: Path, subject: Look) -> None:
    given = {"type": "task_assigned", "from": "captain", "assignee": "a1", "timestamp": NOW}
    write(tmp_path / "runtime/activity/a.jsonl", lines(given))
    assert found(collect_messages.events, subject()) == []


def test_events_of_many_others_do_not_hide_its_own(tmp_path: Path, subject: Look) -> None:
    others = [{"type": "work", "agent": f"b{number}", "at": NOW} for number in range(500)]
    write(tmp_path / "runtime/activity/a.jsonl", lines({**others[0], "agent": "a1"}, *others))
    assert len(found(collect_messages.events, subject())) == 1


def test_a_broken_file_does_not_silence_the_others(tmp_path: Path, subject: Look) -> None:
    claim = {"claimed_by": "a1", "claimed_at": NOW}
    write(tmp_path / "contracts/a1.json", json.dumps(claim))
    write(tmp_path / "contracts/zz.json", "{")
    collector = Collector("CONTRACT_CLAIMED", collect_messages.claims)
    seen = collect(subject(), ActivityTerms(), collectors=[collector])
    assert (len(seen.signals), len(seen.warnings)) == (1, 1)


@pytest.mark.parametrize(
    "time", ["1" + "0" * 400, "1e999", '"never"', "true", "[]", '"2026-01-31"']
)
def test_a_time_that_is_none_is_passed_over(tmp_path: Path, subject: Look, time: str) -> None:
    status = f'{{"current_task": "Write the form", "last_updated": {time}}}'
    path = write(tmp_path / "agent_workspaces/a1/status.json", status)
    assert collect_messages.last_status_time(subject()) == path.stat().st_mtime
    write(tmp_path / "e.jsonl", f'{{"agent": "a1", "type": "work", "at": {time}}}\n')
    assert found(collect_messages.events, subject(settings={"event_files": "e.jsonl"})) == []


def test_a_time_without_a_zone_is_that_of_the_file(tmp_path: Path, subject: Look) -> None:
    status = {"current_task": "Write the form", "last_updated": "2020-01-01T00:00:00"}
    write(tmp_path / "agent_workspaces/a1/status.json", json.dumps(status))
    assert len(found(collect_messages.status_file, subject())) == 1


def test_what_an_agent_of_a_longer_name_wrote_is_not_its_own(tmp_path: Path, subject: Look) -> None:
    for name in ("a1", "a10", "a1b", "A1"):
        write(tmp_path / f"devlogs/{name}.md", "Wrote the parser.")
    write(tmp_path / "devlogs/a1-monday.md", "Wrote the lexer.")
    names = sorted(detail for _, detail in found(collect_messages.devlogs, subject()))
    assert names == ["a1-monday.md", "a1.md"]


def test_only_so_many_lines_are_looked_at(tmp_path: Path, subject: Look) -> None:
    event = {"type": "task_completed", "agent": "a1", "timestamp": NOW}
    write(tmp_path / "runtime/activity/a.jsonl", lines(*[event] * 50))
    assert len(found(collect_messages.events, subject(settings={"most_events": 7}))) == 7


def test_claims_name_the_agent_and_a_time(tmp_path: Path, subject: Look) -> None:
    claim = {"claimed_by": "a1", "claimed_at": "2020-01-01T00:00:00Z"}
    write(tmp_path / "contracts/old.json", json.dumps(claim))
    write(
        tmp_path / "contracts/all.json",
        json.dumps(
            {
                "contracts": {
                    "c1": {"assigned_to": "a1", "claimed_at": NOW},
                    "c2": {"assigned_to": "a2", "claimed_at": NOW},
                    "c3": {"assigned_to": "a1"},
                }
            }
        ),
    )
    assert found(collect_messages.claims, subject()) == [("CONTRACT_CLAIMED", "all.json: claimed")]


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        ({"current_task": "Write the login form"}, True),
        ({"status": "ACTIVE", "next_actions": ["run the tests"]}, True),
        ({"status": "ACTIVE"}, False),
        ({"status": "ACTIVE", "message": "OK, resuming now."}, False),
        ({"status": "ACTIVE", "last_updated": NOW}, False),
        ({"current_task": "Write the form", "last_updated": "2020-01-01T00:00:00Z"}, False),
        ({"current_task": "Write the form", "last_updated": NOW + 86400}, True),
        ({}, False),
    ],
)
def test_a_status_file_counts_if_it_says_something(
    tmp_path: Path, subject: Look, status: object, counts: bool
) -> None:
    write(tmp_path / "agent_workspaces/a1/status.json", json.dumps(status))
    assert bool(found(collect_messages.status_file, subject())) is counts


def test_devlogs_inbox_and_queue(tmp_path: Path, subject: Look) -> None:
    write(tmp_path / "devlogs/a1-monday.md", "Wrote the parser.")
    old = write(tmp_path / "devlogs/a1-old.md", "Wrote the lexer.")
    os.utime(old, (NOW - 86400, NOW - 86400))
    taken = write(tmp_path / "agent_workspaces/a1/inbox/processed/m1.md", "please hurry")
    os.utime(taken, (NOW - 86400, NOW - 86400))
    write(tmp_path / "agent_workspaces/a1/inbox/m2.md", "not taken yet")
    message = {"sender": "a1", "timestamp": NOW, "content": "The parser is done."}
    write(tmp_path / "message_queue/queue.json", json.dumps([message, {"sender": "a2"}]))
    write(tmp_path / "message_queue/broken.json", "{")
    assert found(collect_messages.devlogs, subject()) == [("DEVLOG_CREATED", "a1-monday.md")]
    assert found(collect_messages.inbox, subject()) == [("INBOX_PROCESSING", "processed/m1.md")]
    assert found(collect_messages.queue, subject()) == [("MESSAGE_QUEUE", "queue.json")]


def collector(source: SourceName, collects: Collect) -> Collector:
    return Collector(source, collects)


STATUS = collector("STATUS_UPDATE", collect_messages.status_file)
DEVLOG = collector("DEVLOG_CREATED", collect_messages.devlogs)


@pytest.mark.parametrize("text", ["{", "[]", "null", "\ud83d", "[" * 100_000, "\0"])
def test_a_status_file_that_is_none_is_one_warning(
    tmp_path: Path, subject: Look, text: str
) -> None:
    data = text.encode(errors="surrogatepass")
    write(tmp_path / "agent_workspaces/a1/status.json", data)
    write(tmp_path / "devlogs/a1.md", "Wrote the parser.")
    seen = collect(subject(), ActivityTerms(), collectors=[STATUS, DEVLOG])
    assert [one.source for one in seen.signals] == ["DEVLOG_CREATED"]
    assert len(seen.warnings) == 1
    assert seen.warnings[0].startswith("STATUS_UPDATE: ")


def test_a_huge_status_file_is_not_read(tmp_path: Path, subject: Look) -> None:
    path = write(tmp_path / "agent_workspaces/a1/status.json", "{}")
    os.truncate(path, 2 * 1024**3)
    seen = collect(subject(), ActivityTerms(), collectors=[STATUS])
    assert seen.warnings == (
        f"STATUS_UPDATE: status.json has {2 * 1024**3} bytes, more than {MOST_BYTES}",
    )


def test_what_is_no_regular_file_is_passed_over(tmp_path: Path, subject: Look) -> None:
    folder = tmp_path / "agent_workspaces/a1"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "status.json")
    (tmp_path / "devlogs").mkdir()
    secret = write(tmp_path / "outside.md", "Wrote the parser.")
    (tmp_path / "devlogs/a1.md").symlink_to(secret)
    seen = collect(subject(), ActivityTerms(), collectors=[STATUS, DEVLOG])
    assert (seen.signals, seen.warnings) == ((), ())


def test_patterns_do_not_follow_links_out_of_the_work_tree(tmp_path: Path, subject: Look) -> None:
    inside = tmp_path / "project"
    inside.mkdir()
    write(tmp_path / "elsewhere/a1.md", "Wrote the parser.")
    (inside / "devlogs").symlink_to(tmp_path / "elsewhere")
    assert found(collect_messages.devlogs, subject(inside)) == []


def test_a_folder_of_very_many_files_is_looked_at_in_part_with_a_warning(
    tmp_path: Path, subject: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "devlogs"
    folder.mkdir()
    monkeypatch.setattr("guard.activity.file_patterns._MOST_ENTRIES", 1000)
    for number in range(1001):
        os.close(os.open(folder / f"a1-{number}.md", os.O_CREAT | os.O_WRONLY))
    settings = {"devlog_files": "devlogs/a2*;devlogs/a1*"}
    seen = collect(subject(settings=settings), ActivityTerms(), collectors=[DEVLOG])
    assert (len(seen.signals), len(seen.warnings)) == (20, 1)
    assert "too slow" in seen.warnings[0]


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        ("status_files", "state/{agent}.json"),
        ("devlog_files", "log/{task}/*.md"),
        ("inbox_files", "in/{agent}/*"),
        ("queue_files", "q.jsonl"),
        ("event_files", "e.jsonl"),
        ("contract_files", "c/*.json"),
    ],
)
def test_each_pattern_is_a_setting(tmp_path: Path, subject: Look, key: str, pattern: str) -> None:
    event = {"agent": "a1", "type": "work", "at": NOW, "message": "Wrote the parser."}
    name = pattern.replace("{agent}", "a1").replace("{task}", "T1").replace("*", "x")
    write(tmp_path / name, lines(event))
    collectors = {
        "status_files": collect_messages.status_file,
        "devlog_files": collect_messages.devlogs,
        "inbox_files": collect_messages.inbox,
        "queue_files": collect_messages.queue,
        "event_files": collect_messages.events,
        "contract_files": collect_messages.claims,
    }
    assert found(collectors[key], subject()) == []
    assert len(found(collectors[key], subject(settings={key: pattern}))) == 1
