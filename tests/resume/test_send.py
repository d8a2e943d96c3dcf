"""Prompts are written from evidence and sent by files and programs, never beyond the budget."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guard import generate_resume_prompt
from guard.agents.registry import AgentUpdate
from guard.agents.update import record_finding, update_agent
from guard.core.activity.events import ResumeSent
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.resume.prompt import prompt
from guard.core.resume.report import ResumeReport
from guard.resume import channels
from tests.resume.conftest import Watcher
from tests.support import commit, write
from tests.support.sessions import ending, script, started, until


def tells(watcher: Watcher, message: str, **fields: Any) -> None:
    told = {"task_id": "T1", "agent_id": "a1", "status": "working", **fields}
    update_agent(watcher.guard(), AgentUpdate(message=message, **told))


def sent(watcher: Watcher) -> list[ResumeSent]:
    entries = watcher.guard().store.entries()
    return [entry.event for entry in entries if isinstance(entry.event, ResumeSent)]


def test_an_active_agent_gets_none_unless_activity_is_not_checked(
    watcher: Watcher, inbox: Path
) -> None:
    watcher.spawn()
    tells(watcher, "The parser reads headers.", progress=40)
    soon = watcher.later(minutes=5)
    report = soon.send()
    assert (report.outcome, report.exit_code, report.prompt) == ("active", 1, None)
    assert "TELEMETRY_EVENT" in report.reason
    assert list(inbox.iterdir()) == []
    report = soon.send(check_activity=False)
    assert (report.outcome, report.way, report.exit_code) == ("sent", "inbox", 0)


def test_the_prompt_has_what_is_known(watcher: Watcher, repository: Path) -> None:
    write(repository / "before.py", "the user's\n")
    watcher.spawn()
    tells(watcher, "The parser reads headers.", progress=40)
    guard, text = watcher.guard(), "It is never closed."
    record_finding(guard, "T1", "a1", text, severity="high", file="first.txt")
    tells(watcher, "OK, resuming now")
    write(repository / "parser.py", "code\n")
    write(repository / "guard.toml", "[resume]\npriorities = 'Tests first; no new dependencies'\n")
    report = watcher.later(hours=3).send(send=False)
    assert report.outcome == "written"
    text = report.prompt or ""
    for words in (
        "> The parser reads headers.",
        "- high, first.txt: It is never closed.",
        "- parser.py",
        "- Tests first\n- no new dependencies",
        "State: working. Last sign of activity: 3.0 h ago",
    ):
        assert words in text
    assert "before.py" not in text
    assert "resuming now" not in text
    assert sent(watcher) == []


def test_the_api_writes_a_prompt_or_none(watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher.spawn()
    tells(watcher, "The parser reads headers.")
    place: dict[str, Any] = {"workspace": watcher.workspace, "repo": watcher.root}
    monkeypatch.setenv("GUARD_NOW", watcher.later(hours=2).now.isoformat())
    text = generate_resume_prompt("a1", **place)
    assert text is not None
    assert "> The parser reads headers." in text
    tells(watcher, "Done.", status="completed")
    assert generate_resume_prompt("a1", **place) is None


class TestInbox:
    def test_a_prompt_is_a_new_file(self, watcher: Watcher, inbox: Path) -> None:
        watcher.spawn()
        report = watcher.later(hours=2).send()
        assert (report.outcome, report.way) == ("sent", "inbox"), report.reason
        (file,) = inbox.iterdir()
        assert file.read_text() == report.prompt
        assert file.name.startswith("resume-20260131T140000Z-")
        assert report.reason == f"agent_workspaces/a1/inbox/{file.name}"

    def test_no_file_is_written_over(self, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        write(tmp_path / "in/x.md", "theirs")
        (tmp_path / "in/x-1.md").symlink_to("/proc/nowhere")
        assert channels.put_in_inbox(tmp_path, ("in",), "x.md", "ours") == "x-2.md"
        assert (tmp_path / "in/x.md").read_text() == "theirs"
        assert sorted(os.listdir(tmp_path / "in")) == ["x-1.md", "x-2.md", "x.md"]

    def test_no_link_is_followed(self, watcher: Watcher, repository: Path, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        (outside / "inbox").mkdir(parents=True)
        (repository / ".agents").mkdir()
        (repository / ".agents/a1").symlink_to(outside)
        watcher.spawn()
        report = watcher.later(hours=2).send()
        assert report.outcome == "undeliverable"
        assert "no inbox" in report.reason
        assert list((outside / "inbox").iterdir()) == []
        assert sent(watcher) == []

    def test_the_folders_are_a_knob(self, watcher: Watcher, repository: Path) -> None:
        write(repository / "guard.toml", "[resume]\ninbox_folders = 'post/{task}/{agent}'\n")
        (repository / "post/T1/a1").mkdir(parents=True)
        watcher.spawn()
        assert watcher.later(hours=2).send().reason.startswith("post/T1/a1/resume-")


class TestCommand:
    def send(self, watcher: Watcher, command: str, **environ: str) -> ResumeReport:
        watcher.spawn()
        told = {"GUARD_RESUME__COMMAND": command, **environ}
        return watcher.later(hours=2).send(environ=told)

    def test_it_gets_the_prompt_and_the_ids(self, watcher: Watcher, tmp_path: Path) -> None:
        told = "$GUARD_TASK_ID/$GUARD_AGENT_ID/$GUARD_AGENT_INCARNATION"
        command = script(tmp_path / "bring", f"cat > {tmp_path}/got; echo {told} > {tmp_path}/ids")
        report = self.send(watcher, command)
        assert (report.outcome, report.way) == ("sent", "command"), report.reason
        assert (tmp_path / "got").read_text() == report.prompt
        assert (tmp_path / "ids").read_text() == "T1/a1/1\n"

    def test_no_shell_reads_it(self, watcher: Watcher, tmp_path: Path) -> None:
        command = script(tmp_path / "bring", f'cat > /dev/null; echo "$1" > {tmp_path}/got')
        assert self.send(watcher, f"{command} '$(id);x'").outcome == "sent"
        assert (tmp_path / "got").read_text() == "$(id);x\n"

    @pytest.mark.parametrize(
        ("body", "environ", "outcome", "why"),
        [
            ("echo no such pane >&2; exit 3", {}, "failed", "ended with 3: no such pane"),
            ("sleep 600", {"GUARD_RESUME__COMMAND_SECONDS": "0.2"}, "failed", "longer than 0.2 s"),
            ("yes", {}, "failed", "printed too much"),
        ],
    )
    def test_what_fails_is_said_and_counts(
        self,
        body: str,
        environ: dict[str, str],
        outcome: str,
        why: str,
        watcher: Watcher,
        tmp_path: Path,
    ) -> None:
        report = self.send(watcher, script(tmp_path / "bring", body), **environ)
        assert (report.outcome, report.exit_code) == (outcome, 1)
        assert why in report.reason
        assert len(sent(watcher)) == 1

    @pytest.mark.parametrize("command", ["'", "no-such-program-anywhere", ""])
    def test_what_cannot_be_started_sends_nothing(self, command: str, watcher: Watcher) -> None:
        assert self.send(watcher, command).outcome == "undeliverable"
        assert sent(watcher) == []

    def test_the_project_does_not_name_it(self, watcher: Watcher, repository: Path) -> None:
        write(repository / "guard.toml", "[resume]\ncommand = 'touch made'\n")
        watcher.spawn()
        assert watcher.later(hours=2).send().outcome == "undeliverable"
        assert not (repository / "made").exists()


class TestBudget:
    def test_two_with_a_pause_and_then_a_person(self, watcher: Watcher, inbox: Path) -> None:
        watcher.spawn()
        at = {
            minutes: watcher.later(minutes=minutes).send() for minutes in (90, 100, 106, 125, 900)
        }
        assert [one.outcome for one in at.values()] == ["sent", "paused", "sent", "spent", "spent"]
        assert [at[90].sent_in_stall, at[106].sent_in_stall] == [1, 2]
        assert (at[100].exit_code, at[900].exit_code) == (1, 14)
        assert "prompt 2 of 2" in (at[106].prompt or "")
        assert "a person is needed" in at[125].reason
        assert len(list(inbox.iterdir())) == 2

    @pytest.mark.usefixtures("inbox")
    def test_the_agents_own_work_renews_it(self, watcher: Watcher) -> None:
        watcher.spawn()
        for minutes in (90, 110, 130):
            last = watcher.later(minutes=minutes).send()
        assert last.outcome == "spent"
        tells(watcher.later(minutes=140), "OK, resuming now")
        assert watcher.later(minutes=300).send().outcome == "spent"
        tells(watcher.later(minutes=310), "The parser reads headers.")
        assert watcher.later(minutes=312).send().outcome == "active"
        # Long after that has left the window in which it counts as activity, too.
        report = watcher.later(minutes=1000).send()
        assert (report.outcome, report.sent_in_stall) == ("sent", 1)
        assert len({one.stall for one in sent(watcher)}) == 2

    @pytest.mark.usefixtures("inbox")
    def test_the_file_that_guard_put_there_is_no_sign_of_life(
        self, repository: Path, workspace: Path
    ) -> None:
        """By the real clock: the file lies in the agent's own folder, where what changes is its work."""
        commit(repository, "first.txt")
        now = datetime.now(UTC)
        Watcher(repository, workspace, now - timedelta(hours=9)).spawn()
        watcher = Watcher(repository, workspace, now)
        assert watcher.send(check_activity=False).outcome == "sent"
        assert watcher.later(minutes=16).send(check_activity=False).sent_in_stall == 2
        assert watcher.later(minutes=40).send(check_activity=False).outcome == "spent"

    @pytest.mark.usefixtures("inbox")
    def test_a_new_life_begins_anew(self, watcher: Watcher) -> None:
        watcher.spawn()
        for minutes in (90, 110):
            watcher.later(minutes=minutes).send()
        tells(watcher.later(minutes=120), "Done.", status="failed")
        watcher.later(minutes=121).spawn()
        assert watcher.later(minutes=300).send().sent_in_stall == 1

    @pytest.mark.usefixtures("inbox")
    def test_its_knobs(self, watcher: Watcher) -> None:
        watcher.spawn()
        none = {"GUARD_RESUME__MAX_PER_STALL": "0"}
        assert watcher.later(minutes=90).send(environ=none).outcome == "spent"
        often = {"GUARD_RESUME__MAX_PER_STALL": "3", "GUARD_RESUME__PAUSE_MINUTES": "0"}
        later = watcher.later(minutes=91)
        found = [later.send(environ=often).outcome for _ in range(5)]
        assert found == ["sent", "sent", "sent", "spent", "spent"]

    def test_what_is_refused_costs_nothing(self, watcher: Watcher, repository: Path) -> None:
        watcher.spawn()
        assert watcher.later(minutes=90).send().outcome == "undeliverable"
        (repository / ".agents/a1/inbox").mkdir(parents=True)
        report = watcher.later(minutes=91).send()
        assert (report.outcome, report.sent_in_stall) == ("sent", 1)

    def test_an_agent_that_reports_in_between_gets_none(
        self, watcher: Watcher, inbox: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watcher.spawn()
        later = watcher.later(hours=2)

        def meanwhile(evidence: Any) -> str:
            tells(later, "The parser reads headers.")
            return prompt(evidence)

        monkeypatch.setattr("guard.resume.send.prompt", meanwhile)
        assert later.send().outcome == "active"
        assert list(inbox.iterdir()) == []

    @pytest.mark.usefixtures("inbox")
    def test_an_ended_agent_gets_none(self, watcher: Watcher) -> None:
        watcher.spawn()
        tells(watcher, "Done.", status="completed")
        assert watcher.later(hours=2).send().outcome == "ended"
        assert watcher.later(hours=2).send(check_activity=False).outcome == "ended"


@pytest.mark.usefixtures("inbox")
def test_many_at_once_send_no_more_than_one_may(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher.spawn()
    words = ("--workspace", watcher.workspace, "resume", "a1", "--send", "--format", "json")
    monkeypatch.setenv("GUARD_NOW", watcher.later(minutes=90).now.isoformat())
    monkeypatch.setenv("GUARD_RESUME__PAUSE_MINUTES", "0")
    processes = [started(*words, listen=True) for _ in range(5)]
    outcomes = []
    for process in processes:
        with ending(process):
            outcomes.append(json.loads(process.communicate(timeout=120)[0])["outcome"])
    assert sorted(outcomes) == ["sent", "sent", "spent", "spent", "spent"]
    assert len(sent(watcher)) == 2


def test_a_guard_that_dies_while_it_sends_has_sent_that_one(
    watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher.spawn()
    log = tmp_path / "brought"
    command = script(tmp_path / "bring", f"echo $$ >> {log}; exec sleep 600")
    monkeypatch.setenv("GUARD_RESUME__COMMAND", command)
    for minutes, count in ((90, 1), (110, 2)):
        monkeypatch.setenv("GUARD_NOW", watcher.later(minutes=minutes).now.isoformat())
        with ending(started("--workspace", watcher.workspace, "resume", "a1", "--send")) as process:
            until(partial(_has_words, log, count), 90)
            process.kill()
            process.wait()
        os.kill(int(log.read_text().split()[-1]), signal.SIGKILL)
    report = watcher.later(minutes=900).send(environ={"GUARD_RESUME__COMMAND": command})
    assert report.outcome == "spent"
    assert len(log.read_text().split()) == 2


class TestSession:
    SESSION = "0b3f1c9e-6a51-4d6e-9f0b-0a4d8d1f2c11"

    @pytest.fixture
    def crashed(self, watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watcher:
        """An agent of `guard run` whose session is known; both were killed, as by a machine without memory."""
        line = json.dumps({"type": "system", "subtype": "init", "session_id": self.SESSION})
        body = f"echo \"$@\" >> {tmp_path}/calls\necho '{line}'\n[ -e {tmp_path}/again ] || exec sleep 600"
        script(tmp_path / "bin/claude", body)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        monkeypatch.setenv("GUARD_COMPLETION_CHECK__MAX_PROBES", "1")
        words = (
            "--workspace",
            watcher.workspace,
            "run",
            "--no-probe",
            "--task",
            "T1",
            "--agent-id",
            "a1",
        )
        argv = (*words, "--", "claude", "-p", "x", "--output-format", "stream-json", "--verbose")
        with ending(started(*argv)) as process:
            until(lambda: b'"session":"' + self.SESSION.encode() in _log(watcher), 90)
            process.kill()
            process.wait()
        return Watcher(watcher.root, watcher.workspace, _now())

    def test_it_is_resumed_by_its_id_when_its_process_is_gone(
        self, crashed: Watcher, tmp_path: Path
    ) -> None:
        alive = crashed.send(by="session", check_activity=False)
        assert alive.outcome == "undeliverable"
        assert "it is running" in alive.reason
        registry = crashed.guard().store.view(AGENT_REGISTRY, "T1")
        assert registry is not None
        known = registry.agent("a1")
        assert known is not None
        assert known.pid is not None
        os.kill(known.pid, signal.SIGKILL)
        write(tmp_path / "again", "")
        report = crashed.send(by="session", check_activity=False)
        assert (report.outcome, report.way) == ("sent", "session"), report.reason
        calls = tmp_path / "calls"
        until(lambda: "[stall-recovery] guard to agent a1" in calls.read_text(), 90)
        assert calls.read_text().count(f"--resume {self.SESSION}\n") == 1
        # One for the iteration that crashed, one for that of the prompt.
        until(lambda: _log(crashed).count(b'"type":"iteration_ended"') == 2, 90)

    def test_it_is_never_chosen_by_itself(self, watcher: Watcher) -> None:
        watcher.spawn()
        report = watcher.later(hours=2).send()
        assert "session:" not in report.reason
        assert "no session of it is recorded" in watcher.later(hours=2).send(by="session").reason


def _has_words(file: Path, count: int) -> bool:
    return file.exists() and len(file.read_text().split()) == count


def _log(watcher: Watcher) -> bytes:
    file = watcher.workspace / "events.jsonl"
    return file.read_bytes() if file.exists() else b""


def _now() -> datetime:
    return datetime.now(UTC)
