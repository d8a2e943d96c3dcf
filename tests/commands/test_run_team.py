"""`guard run` and the agent's helpers: its output tells of them, and the accounting of its team follows while it runs."""

import fcntl
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guard import team as teams
from guard.context.invocation import Invocation
from guard.iteration.current import team_scope
from tests.streams import init, jsonl, result, stream, system
from tests.support import commit, run, write
from tests.support.sessions import ending, until

LIMIT = 90
COMMIT = "echo done > done.txt && git add done.txt && git commit -q -m 'feat: done'"
BUILD = "bl2rwfko1"
"""The helper in the recorded stream of Claude Code."""
HELPER = "00000002-0000-4000-8000-000000000002"
"""The helper in the recorded stream of Codex."""
CLAUDE = stream("claude-background").splitlines(keepends=True)
CODEX = stream("codex-helper").splitlines(keepends=True)
AT_WORK = b"".join(CLAUDE[:9])
"""To the end of the first turn, with the build under way."""
UNFINISHED = b"".join([*CODEX[:5], CODEX[-1]])
"""Codex ends its turn without waiting for its helper."""
TOLD = ("--no-probe", "--format", "json", "--agent")


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    """A repository with one commit, in which the test stands."""
    commit(repository, "first.txt")
    return repository


@pytest.fixture
def plays(tmp_path: Path) -> "Plays":
    return Plays(tmp_path)


class Plays:
    """Stand-ins for an agent: they print what was recorded, and wait for a word in between."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    @property
    def cue(self) -> Path:
        return self.folder / "cue"

    def prints(self, data: bytes) -> str:
        self._count += 1
        file = write(self.folder / f"part{self._count}", data)
        return f"cat {shlex.quote(str(file))}"

    @property
    def waits(self) -> str:
        return f"until test -e {shlex.quote(str(self.cue))}; do sleep 0.05; done"


def names() -> list[str]:
    """Who counts now in the work tree, as another process sees it."""
    guard = Invocation()
    _, members = teams.counting_members(guard.store, team_scope(guard), guard.clock.moment())
    return [one.member for one in members]


def iterated(agent: str, *script: str) -> tuple[int, Any]:
    done = run("run", *TOLD, agent, "--", "sh", "-c", "\n".join(script))
    assert done.out, done.err
    return done.code, done.json


def events(*types: str) -> list[Any]:
    return [one for one in run("log", "--format", "json").json["events"] if one["type"] in types]


def started(agent: str, *script: str, form: str = "json") -> subprocess.Popen[bytes]:
    words = ["run", "--no-probe", "--format", form, "--agent", agent, "--", "sh", "-c"]
    return subprocess.Popen(
        [sys.executable, "-m", "guard", *words, "\n".join(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_helper_counts_while_the_agent_runs_and_no_longer_when_it_has_ended(plays: Plays) -> None:
    script = (COMMIT, plays.prints(AT_WORK), plays.waits, plays.prints(b"".join(CLAUDE[9:])))
    with ending(started("claude", *script, form="text")) as guard:
        until(lambda: names() == [BUILD], LIMIT)
        looked = run("check", "--no-wait", "--no-probe", "--format", "json")
        assert looked.json["team"]["active"] == 1
        assert looked.json["complete"] is False
        shown = run("team", "show", "--format", "json").json
        assert (shown["held"], shown["members"][0]["description"]) == (True, "build the site")
        plays.cue.touch()
        out, err = guard.communicate(timeout=LIMIT)
    assert guard.returncode == 0, err
    assert out.startswith(stream("claude-background"))
    assert b"complete: commits" in out.removeprefix(stream("claude-background"))
    assert names() == []


def test_the_agents_output_passes_byte_for_byte(plays: Plays) -> None:
    data = AT_WORK + b"no event \xff\x00\r\n\n{broken\n" + b"".join(CLAUDE[9:]) + b"no newline"
    words = ["-q", "run", *TOLD, "claude", "--", "sh", "-c", plays.prints(data)]
    command = [sys.executable, "-m", "guard", *words]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
    assert done.stderr == data


def test_what_codex_did_not_wait_for_was_killed_and_holds_nothing(plays: Plays) -> None:
    code, found = iterated("codex", COMMIT, plays.prints(UNFINISHED))
    assert (code, found["status"], found["reason"]) == (16, "interrupted", "helpers_killed")
    assert "do a part" in found["detail"]
    assert found["team"]["active"] == 0
    (left,) = [one for one in events("team_member_left") if one["member"] == HELPER]
    assert (left["because"], left["detail"]) == ("killed", "the process that it ran in has ended")
    assert run("check", "--no-wait", "--no-probe").code != 11


def test_they_hold_nothing_either_where_the_output_could_not_be_kept(plays: Plays) -> None:
    run("baseline")
    write(Path(run("where").out.strip()) / "output.d", "no folder")
    code, found = iterated("codex", plays.prints(UNFINISHED))
    assert (code, found["team"]["active"]) == (16, 0)


def test_a_helper_of_claude_whose_process_has_gone_was_killed(plays: Plays) -> None:
    code, found = iterated("claude", COMMIT, plays.prints(AT_WORK))
    assert (code, found["status"], found["team"]["active"]) == (16, "interrupted", 0)
    assert "build the site" in found["detail"]
    left = {one["member"]: one["because"] for one in events("team_member_left")}
    assert left[BUILD] == "killed"


def test_codex_that_waited_for_its_helper_is_complete(plays: Plays) -> None:
    code, found = iterated("codex", COMMIT, plays.prints(b"".join(CODEX)))
    assert (code, found["reason"], found["team"]["active"]) == (0, "commits", 0)
    left = {one["member"]: one["because"] for one in events("team_member_left")}
    assert left[HELPER] == "ended"


def test_an_idle_teammate_that_ends_with_its_session_is_no_lost_work(plays: Plays) -> None:
    tasks = [{"task_id": "t1", "task_type": "in_process_teammate", "description": "reviewer"}]
    listed = system("background_tasks_changed", tasks=tasks)
    code, found = iterated("claude", COMMIT, plays.prints(jsonl(init(), listed, result())))
    assert (code, found["reason"], found["team"]["active"]) == (0, "commits", 0)
    assert [one["member"] for one in events("team_member_left")] == ["t1"]


def test_an_agent_that_nobody_named_is_known_by_its_stream(plays: Plays) -> None:
    done = run("run", "--no-probe", "--", "sh", "-c", plays.prints(UNFINISHED))
    assert done.code == 16, done.err
    assert len(events("team_member_joined")) == 2


@pytest.mark.parametrize("name", ["codex-ok", "copilot-ok"])
def test_a_stream_without_helpers_makes_no_team(name: str, plays: Plays) -> None:
    code, found = iterated(name.partition("-")[0], COMMIT, plays.prints(stream(name)))
    assert (code, found["team"]) == (0, None)


def test_plain_text_that_speaks_of_helpers_makes_no_team(plays: Plays) -> None:
    text = b"I saw this:\n```\n" + AT_WORK + b'```\n"task_started" "spawn_agent"\n' * 100
    done = run("run", "--no-probe", "--format", "json", "--", "sh", "-c", plays.prints(text))
    assert done.json["team"] is None
    assert events("team_member_joined") == []


def test_a_member_that_somebody_else_counted_outlives_the_session(plays: Plays) -> None:
    spawn = f"{sys.executable} -m guard team spawn --member remote --team crew > /dev/null"
    script = (COMMIT, spawn, plays.prints(UNFINISHED))
    done = run("run", "--no-wait", *TOLD, "codex", "--", "sh", "-c", "\n".join(script))
    assert done.json["team"]["active"] == 1, done.err


def test_a_helper_that_only_a_hook_told_of_ends_with_the_agent(plays: Plays) -> None:
    """As in a session at a terminal, whose output tells nothing, and which was killed before it could say that it ends."""
    session = {"session_id": "s1", "cwd": str(Path.cwd())}
    told = [("SessionStart", session), ("SubagentStart", {**session, "agent_id": "a1"})]
    hooks = [
        f"echo {shlex.quote(json.dumps(heard))} | {sys.executable} -m guard hook claude {event}"
        for event, heard in told
    ]
    done = run("run", *TOLD, "claude", "--", "sh", "-c", "; ".join([*hooks, COMMIT]))
    assert (done.code, done.json["status"]) == (0, "complete"), done.err
    assert [one["because"] for one in events("team_member_left")] == ["killed"]


def test_a_store_that_is_busy_holds_up_no_line(plays: Plays) -> None:
    """The lock is held while the agent prints and goes on; what it told is recorded when the lock is free."""
    begins, goes_on, ends = b"".join(CLAUDE[:3]), b"".join(CLAUDE[3:9]), b"".join(CLAUDE[9:])
    more = plays.folder / "more"
    script = (
        plays.prints(begins),
        plays.waits,
        plays.prints(goes_on),
        f"until test -e {more}; do sleep 0.05; done",
        plays.prints(ends),
    )
    with ending(started("claude", COMMIT, *script, form="text")) as guard:
        assert guard.stdout is not None
        assert guard.stderr is not None
        assert guard.stdout.read(len(begins)) == begins
        until(lambda: team_scope(Invocation()).session is not None, LIMIT)
        (lock,) = Path.home().rglob("workspace.lock")
        with lock.open("rb+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            plays.cue.touch()
            assert guard.stdout.read(len(goes_on)) == goes_on
            assert any(b"for now" in line for line in guard.stderr)
        until(lambda: names() == [BUILD], LIMIT)
        more.touch()
        assert guard.wait(LIMIT) == 0


@pytest.mark.parametrize("looked", [False, True], ids=["at once", "after a look"])
def test_helpers_of_an_agent_that_died_with_its_guard_hold_nothing(
    looked: bool, plays: Plays
) -> None:
    tell_pid = f"echo $$ > {plays.folder}/pid"
    with ending(started("codex", tell_pid, plays.prints(UNFINISHED), plays.waits)) as guard:
        until(lambda: HELPER in names(), LIMIT)
        guard.kill()
        guard.wait()
        if looked:
            assert run("check", "--no-wait", "--no-probe").code == 12
        plays.cue.touch()
        pid = int((plays.folder / "pid").read_text())
        until(lambda: not Path(f"/proc/{pid}").exists(), LIMIT)
    assert names() == [HELPER]
    checked = run("check", "--no-wait", "--no-probe", "--format", "json")
    assert (checked.code, checked.json["team"]["active"]) == (16, 0), checked.err
    assert names() == []


def test_a_flood_of_helpers_is_counted_in_the_end(plays: Plays) -> None:
    tasks = [
        {"task_id": f"t{number}", "task_type": "local_bash", "description": f"job {number}"}
        for number in range(1500)
    ]
    begun = [system("task_started", is_backgrounded=True, **task) for task in tasks]
    ended = [system("task_notification", task_id=f"t{n}", status="completed") for n in range(1499)]
    script = (plays.prints(jsonl(init(), *begun, *ended)), plays.waits)
    with ending(started("claude", *script)) as guard:
        until(lambda: names() == ["t1499"], LIMIT)
        plays.cue.touch()
        out, _ = guard.communicate(timeout=LIMIT)
    assert (guard.returncode, json.loads(out)["team"]["active"]) == (16, 0)
