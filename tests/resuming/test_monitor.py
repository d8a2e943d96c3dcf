"""The monitor: round after round over all agents, within the budgets, and clean at its end."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from guard.core.reports.resume import ResumeReport
from guard.reported import updated
from guard.resuming.monitor import Monitor, round_of
from guard.resuming.sending import Wish
from tests.resuming.conftest import Watcher
from tests.support import write
from tests.support.sessions import ending, started, until

SENDS = Wish(sends=True)


def inboxes(root: Path, *names: str) -> None:
    for name in names:
        (root / f"agent_workspaces/{name}/inbox").mkdir(parents=True)


def files(root: Path, name: str) -> int:
    return len(list((root / f"agent_workspaces/{name}/inbox").iterdir()))


def outcomes(watcher: Watcher, wish: Wish = SENDS) -> dict[str, str]:
    return {one.agent_id: one.outcome for one in round_of(watcher.guard(), wish)}


@pytest.mark.usefixtures("inbox")
def test_those_that_are_due_get_one_and_the_others_none(watcher: Watcher, repository: Path) -> None:
    inboxes(repository, "busy", "new", "done")
    for name in ("a1", "busy", "done", "lost"):
        watcher.spawn(name)
    later = watcher.later(hours=2)
    tells(later, "busy", "The parser reads headers.")
    tells(later, "done", "Done.", status="completed")
    later.later(minutes=-5).spawn("new")
    assert outcomes(later) == {"a1": "sent", "lost": "undeliverable"}
    assert [files(repository, name) for name in ("a1", "busy", "new", "done")] == [1, 0, 0, 0]


def tells(watcher: Watcher, name: str, message: str, **fields: Any) -> None:
    told = {"task_id": "T1", "agent_id": name, "status": "working", "progress": None, **fields}
    updated(watcher.guard(), message=message, **told)


def test_without_sending_it_shows_who_is_due(watcher: Watcher, inbox: Path) -> None:
    watcher.spawn()
    assert outcomes(watcher.later(hours=2), Wish()) == {"a1": "written"}
    assert list(inbox.iterdir()) == []


@pytest.mark.usefixtures("inbox")
def test_by_age_alone_only_the_oldest_are_due(watcher: Watcher) -> None:
    watcher.spawn()
    wish = Wish(sends=True, validates=False)
    assert outcomes(watcher.later(hours=11), wish) == {}
    assert outcomes(watcher.later(hours=13), wish) == {"a1": "sent"}


def test_a_frozen_agent_gets_two_over_many_rounds(watcher: Watcher, inbox: Path) -> None:
    watcher.spawn()
    found = [outcomes(watcher.later(minutes=minutes))["a1"] for minutes in range(60, 1500, 60)]
    assert found == ["sent", "sent", *["spent"] * 22]
    assert len(list(inbox.iterdir())) == 2


@pytest.mark.usefixtures("inbox")
def test_one_fault_does_not_stop_the_others(watcher: Watcher, repository: Path) -> None:
    inboxes(repository, "b2")
    folder = repository / "agent_workspaces/a1/inbox"
    watcher.spawn()
    watcher.spawn("b2")
    if os.getuid() == 0:
        folder.rmdir()
        folder.symlink_to("/nonexistent")
    else:
        folder.chmod(0o500)
    assert outcomes(watcher.later(hours=2)) == {"a1": "undeliverable", "b2": "sent"}


@pytest.mark.usefixtures("inbox")
def test_it_tells_only_what_is_new(watcher: Watcher) -> None:
    watcher.spawn()
    told: list[ResumeReport] = []
    monitor = Monitor(watcher.later(minutes=90).guard(), SENDS, told.append)
    for _ in range(3):
        monitor._round()
    assert [one.outcome for one in told] == ["sent", "paused"]


def test_a_round_that_cannot_look_is_given_up(
    watcher: Watcher, capsys: pytest.CaptureFixture[str]
) -> None:
    watcher.spawn()
    write(watcher.workspace / "registry/GLOBAL_REGISTRY.json", "{")
    log = watcher.workspace / "events.jsonl"
    log.write_bytes(b"{}\n" + log.read_bytes())
    Monitor(watcher.guard(), SENDS, lambda _report: None)._round()
    assert "this round is given up" in capsys.readouterr().err


@pytest.mark.usefixtures("inbox")
def test_two_monitors_watch_until_they_are_told_to_end(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the real clock. A second agent, registered while they wait, wakes them long before their timers."""
    ago = Watcher(repository, workspace, datetime.now(UTC) - timedelta(hours=9))
    ago.spawn()
    monkeypatch.setenv("GUARD_RESUME__WATCH_SECONDS", "600")
    words = ("--workspace", workspace, "resume", "--all", "--send", "--watch", "--format", "json")
    inboxes(repository, "b2")
    with (
        ending(started(*words, listen=True)) as one,
        ending(started(*words, listen=True)) as other,
    ):
        until(lambda: files(repository, "a1") == 1, 90)
        ago.spawn("b2")
        until(lambda: files(repository, "b2") == 1, 90)
        one.send_signal(signal.SIGINT)
        other.send_signal(signal.SIGTERM)
        said = [process.communicate(timeout=90) for process in (one, other)]
        assert [one.returncode, other.returncode] == [0, 0], said
    lines = [json.loads(line) for out, _ in said for line in out.splitlines()]
    sent = [line["agent_id"] for line in lines if line["outcome"] == "sent"]
    assert sorted(sent) == ["a1", "b2"]
    assert {line["schema"] for line in lines} == {"guard/resume/1"}
    assert [files(repository, name) for name in ("a1", "b2")] == [1, 1]
