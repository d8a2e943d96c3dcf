"""The monitor: rounds over all agents within the budgets, and a clean end."""

import json
import os
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from guard.agents.registry import AgentUpdate
from guard.agents.update import update_agent
from guard.core.resume.report import ResumeReport
from guard.resume.monitor import Monitor, resume_due
from guard.resume.send import ResumeRequest
from tests.resume.conftest import Watcher
from tests.support import write
from tests.support.sessions import ending, started, until

SENDS = ResumeRequest(send=True)


def inboxes(root: Path, *names: str) -> None:
    for name in names:
        (root / f"agent_workspaces/{name}/inbox").mkdir(parents=True)


def listen(process: subprocess.Popen[str], said: list[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)  # noqa: PERF402  The test looks at it meanwhile.


def sent_in(said: list[str]) -> list[str]:
    lines = [json.loads(line) for line in tuple(said)]
    return [line["agent_id"] for line in lines if line["outcome"] == "sent"]


def files(root: Path, name: str) -> int:
    return len(list((root / f"agent_workspaces/{name}/inbox").iterdir()))


def outcomes(watcher: Watcher, wish: ResumeRequest = SENDS) -> dict[str, str]:
    return {one.agent_id: one.outcome for one in resume_due(watcher.guard(), wish)}


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
    told = {"task_id": "T1", "agent_id": name, "status": "working", **fields}
    update_agent(watcher.guard(), AgentUpdate(message=message, **told))


def test_without_sending_it_shows_who_is_due(watcher: Watcher, inbox: Path) -> None:
    watcher.spawn()
    assert outcomes(watcher.later(hours=2), ResumeRequest()) == {"a1": "written"}
    assert list(inbox.iterdir()) == []


@pytest.mark.usefixtures("inbox")
def test_by_age_alone_only_the_oldest_are_due(watcher: Watcher) -> None:
    watcher.spawn()
    wish = ResumeRequest(send=True, check_activity=False)
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
        folder.symlink_to("/proc/nowhere")
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


def test_acknowledgements_and_empty_status_files_hold_no_prompt_back(
    watcher: Watcher, inbox: Path
) -> None:
    watcher.spawn()
    for minutes in range(30, 150, 30):
        tells(watcher.later(minutes=minutes), "a1", "OK, resuming now")
    later = watcher.later(minutes=130)
    status = inbox.parent / "status.json"
    write(status, '{"status": "working", "last_updated": "2026-01-31T14:09:00Z"}')
    os.utime(status, (later.now.timestamp() - 60,) * 2)
    assert outcomes(later) == {"a1": "sent"}


class TestOutage:
    NAMES = ("a1", "b2", "c3", "d4")

    @pytest.fixture
    def down(self, watcher: Watcher, repository: Path) -> Watcher:
        """Four agents, of which nothing was seen after the same minute."""
        inboxes(repository, *self.NAMES)
        for name in self.NAMES:
            watcher.spawn(name)
        for name in self.NAMES:
            tells(watcher.later(minutes=5), name, "The parser reads headers.")
        return watcher

    def test_no_prompt_is_sent_and_one_warning_is_printed(
        self, down: Watcher, repository: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monitor = Monitor(down.later(hours=2).guard(), SENDS, lambda _report: None)
        for _ in range(3):
            monitor._round()
        assert [files(repository, name) for name in self.NAMES] == [0] * 4
        assert capsys.readouterr().err.count("4 agents of 4 fell silent together") == 1

    def test_those_that_do_not_come_back_are_stalled_in_the_end(self, down: Watcher) -> None:
        assert outcomes(down.later(minutes=244)) == {}
        assert outcomes(down.later(minutes=246)) == dict.fromkeys(self.NAMES, "sent")

    def test_how_long_it_holds_is_a_knob(
        self, down: Watcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GUARD_ACTIVITY__OUTAGE_HOLD_MINUTES", "30")
        assert outcomes(down.later(hours=2)) == dict.fromkeys(self.NAMES, "sent")

    def test_it_explains_the_silence_of_the_last_when_the_first_are_back(
        self, down: Watcher
    ) -> None:
        told: list[ResumeReport] = []
        monitor = Monitor(down.later(hours=2).guard(), SENDS, told.append)
        monitor._round()
        for name in self.NAMES[:3]:
            tells(down.later(minutes=121), name, "It reads bodies, too.")
        monitor.guard = down.later(minutes=125).guard()
        monitor._round()
        assert told == []
        monitor.guard = down.later(minutes=246).guard()
        monitor._round()
        assert [(one.agent_id, one.outcome) for one in told][-1] == ("d4", "sent")

    def test_another_that_fell_silent_earlier_is_not_spared(
        self, down: Watcher, repository: Path
    ) -> None:
        inboxes(repository, "old")
        down.later(hours=-9).spawn("old")
        assert outcomes(down.later(hours=2)) == {"old": "sent"}


def test_a_round_that_cannot_look_is_given_up(
    watcher: Watcher, capsys: pytest.CaptureFixture[str]
) -> None:
    watcher.spawn()
    write(watcher.workspace / "registry/GLOBAL_REGISTRY.json", "{")
    log = watcher.workspace / "events.jsonl"
    log.write_bytes(b"{}\n" + log.read_bytes())
    Monitor(watcher.guard(), SENDS, lambda _report: None)._round()
    assert "this round failed" in capsys.readouterr().err


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
        # The line follows the delivery: a monitor that is ended in between has sent without saying so.
        said: list[str] = []
        readers = [Thread(target=listen, args=(process, said)) for process in (one, other)]
        for reader in readers:
            reader.start()
        until(lambda: len(sent_in(said)) == 2, 90)
        one.send_signal(signal.SIGINT)
        other.send_signal(signal.SIGTERM)
        assert [one.wait(90), other.wait(90)] == [0, 0], said
        for reader in readers:
            reader.join()
    lines = [json.loads(line) for line in said]
    assert sorted(sent_in(said)) == ["a1", "b2"]
    assert {line["schema"] for line in lines} == {"guard/resume/1"}
    assert [files(repository, name) for name in ("a1", "b2")] == [1, 1]
