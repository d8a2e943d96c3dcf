"""The spool taken in: all of it, once, whoever does it and whoever dies over it."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guard import team as teams
from guard.context.invocation import Invocation
from guard.core.hooks.events import HookSessionStarted, HooksFolded
from guard.core.hooks.state import HOOKS, HooksState
from guard.core.iteration.events import IterationStarted, RunStarted, SessionSeen
from guard.core.team.events import TeamMemberAlive, TeamMemberJoined
from guard.core.team.state import Member, Scope
from guard.hooks import ingest, spool
from guard.hooks.agent import ingest as agent_ingest
from guard.hooks.agent import payload
from guard.hooks.ingest import ingest_hooks
from guard.hooks.spool_file import read_document
from guard.store import Store
from guard.system.private_files import Folder
from tests.hooks.agent.documents import DOCUMENTS, data
from tests.support import Result, commit, run, write
from tests.support.events import MOMENT
from tests.support.sessions import ending, started

SESSION = "00000006-0000-4000-8000-000000000006"
OF_THIS = {"session_id": SESSION}


@pytest.fixture
def guard(repository: Path) -> Invocation:
    return Invocation()


def hear(event: str, agent: str = "claude", **more: Any) -> Path:
    told = payload.read_payload(agent, event, data(agent, event, **{**OF_THIS, **more}), os.environ)
    path = spool.put(os.environ, told)
    assert path is not None
    return Path(path)


def members(guard: Invocation, session: str | None = SESSION) -> dict[str, Member]:
    scope = Scope(guard.worktree_key, session)
    state = teams.read_team(Invocation().store, scope, guard.clock.moment())
    return {one.member: one for one in state.members} if state is not None else {}


def status(guard: Invocation) -> dict[str, str]:
    return {name: one.status for name, one in members(guard).items()}


def hooks(guard: Invocation) -> HooksState:
    view = Invocation().store.view(HOOKS, guard.worktree_key)
    assert view is not None
    return view


def left(home: Path) -> list[str]:
    return [path.name for path in (home / "state/guard/spool.d").glob("*/*")]


def count(kind: type) -> int:
    return sum(isinstance(one.event, kind) for one in Invocation().store.entries())


def test_helpers_are_counted_by_what_their_hooks_were_told(guard: Invocation, home: Path) -> None:
    hear("SubagentStart", agent_id="a")
    hear("SubagentStart", agent_id="b")
    ingest_hooks(guard)
    assert status(guard) == {"a": "active", "b": "active"}
    assert left(home) == []
    hear("SubagentStop", agent_id="a")
    hear("PostToolUse", agent_id="b")
    ingest_hooks(guard)
    assert status(guard) == {"b": "active", "a": "left"}
    calls = {one.event: one.count for one in hooks(guard).calls}
    assert calls == {"SubagentStart": 2, "SubagentStop": 1, "PostToolUse": 1}


def test_each_is_recorded_at_the_moment_at_which_it_was_heard(guard: Invocation) -> None:
    heard = payload.read_payload(
        "claude", "SubagentStart", data("claude", "SubagentStart"), os.environ
    )
    heard.update(session=SESSION, helper="a", seconds=1_700_000_000.5, cwd=os.getcwd())
    spool.put(os.environ, heard)
    ingest_hooks(guard)
    seen = members(guard)["a"].seen
    assert seen.at.timestamp() == 1_700_000_000.5
    assert (seen.boot_seconds, seen.boot_id) == (heard["boot_seconds"], heard["boot_id"])
    assert hooks(guard).calls[0].last_at == seen.at


def test_every_document_can_be_taken_in_and_the_log_is_sound(guard: Invocation, home: Path) -> None:
    for agent, events in DOCUMENTS.items():
        for event in events:
            hear(event, agent)
    ingest_hooks(guard)
    assert left(home) == []
    total = sum(map(len, DOCUMENTS.values()))
    assert sum(one.count for one in hooks(guard).calls) == total
    assert run("verify").code == 0


def test_a_sign_of_life_that_is_replaced_meanwhile_is_not_lost(
    guard: Invocation, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear("SubagentStart", agent_id="a")
    hear("PostToolUse", agent_id="a")
    late: list[Path] = []

    def and_another(folder: Folder, name: str, *how: Any) -> Any:
        found = read_document(folder, name, *how)
        if "alive" in name and not late:
            late.append(hear("PostToolUse", agent_id="a", tool_name="later"))
        return found

    monkeypatch.setattr(agent_ingest, "read_document", and_another)
    ingest_hooks(guard)
    assert count(TeamMemberAlive) == 2
    assert left(home) == []


FOLDING = """
from guard.hooks.ingest import ingest_hooks
from guard.context.invocation import Invocation
ingest_hooks(Invocation())
"""
KILLED = f"""
import os, signal, sys
from guard.hooks.agent import ingest
setattr(ingest, sys.argv[1], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
{FOLDING}
"""


@pytest.mark.parametrize(("at", "recorded"), [("_folded_event", 0), ("_delete", 1)])
def test_a_fold_that_is_killed_takes_in_nothing_twice(
    at: str, recorded: int, guard: Invocation, home: Path
) -> None:
    for helper in ("a", "b"):
        hear("SubagentStart", agent_id=helper)
        hear("PostToolUse", agent_id=helper)
    done = subprocess.run([sys.executable, "-c", KILLED, at])
    assert done.returncode == -signal.SIGKILL
    assert len(left(home)) == 4
    assert (count(HooksFolded), count(TeamMemberJoined)) == (recorded, 2 * recorded)
    hear("SubagentStart", agent_id="c")
    ingest_hooks(guard)
    assert left(home) == []
    assert (count(TeamMemberJoined), count(TeamMemberAlive)) == (3, 2)
    calls = {one.event: one.count for one in hooks(guard).calls}
    assert calls == {"SubagentStart": 3, "PostToolUse": 2}


def test_files_that_cannot_be_deleted_are_not_taken_in_again(
    guard: Invocation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    remove = Folder.remove

    def stuck(folder: Folder, name: str) -> None:
        if "spool.d" in folder.path and name.endswith(".json"):
            raise PermissionError(13, "Permission denied", name)
        remove(folder, name)

    monkeypatch.setattr(Folder, "remove", stuck)
    ingest._warned.clear()
    for helper in ("a", "b", "c"):
        hear("SubagentStart", agent_id=helper)
        ingest_hooks(guard)
        ingest_hooks(guard)
    assert count(TeamMemberJoined) == 3
    assert capsys.readouterr().err.count("could not be recorded") == 1
    monkeypatch.undo()


def test_many_files_are_taken_in_by_several_changes(
    guard: Invocation, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_ingest, "MOST_AT_ONCE", 3)
    for number in range(10):
        hear("SubagentStart", agent_id=f"a{number}")
    ingest_hooks(guard)
    assert (count(HooksFolded), count(TeamMemberJoined)) == (4, 10)
    assert left(home) == []


def test_many_that_fold_at_once_take_in_everything_once(guard: Invocation, home: Path) -> None:
    for number in range(200):
        hear("SubagentStart", agent_id=f"a{number}")
        hear("PostToolUse", agent_id=f"a{number}")
    command = [sys.executable, "-c", FOLDING]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    assert [process.communicate(timeout=90)[1] for process in processes] == [b""] * 4
    joined = Counter(
        one.event.member
        for one in Invocation().store.entries()
        if isinstance(one.event, TeamMemberJoined)
    )
    assert joined == {f"a{number}": 1 for number in range(200)}
    assert sum(one.count for one in hooks(guard).calls) == 400
    assert left(home) == []


def test_what_makes_no_sense_is_deleted_and_said_once(
    guard: Invocation, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = hear("SubagentStart", agent_id="a").parent
    elsewhere = write(home / "elsewhere", "{}")
    write(place / "garbage.json", b"\xff{")
    write(place / "odd name.json", "{}")
    write(place / "large.json", b" " * 5_000_000)
    write(place / "older.json", '{"schema": "guard/heard/0"}')
    (place / "link.json").symlink_to(elsewhere)
    os.link(elsewhere, place / "linked.json")
    os.mkfifo(place / "pipe.json")
    (place / "folder.json").mkdir()
    ingest._warned.clear()
    ingest_hooks(guard)
    ingest_hooks(guard)
    assert status(guard) == {"a": "active"}
    assert left(home) == ["folder.json"]
    assert elsewhere.read_text() == "{}"
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "8 files in" in said[0]


def test_what_a_killed_hook_had_begun_is_cleared_away_later(guard: Invocation, home: Path) -> None:
    place = hear("SubagentStart", agent_id="a").parent
    old, new = write(place / ".1-1.tmp", "{"), write(place / ".2-2.tmp", "{")
    os.utime(old, (1_700_000_000, 1_700_000_000))
    ingest_hooks(guard)
    assert left(home) == [new.name]


SEEN: dict[str, Any] = {"id": "e3", "iteration": 1, "agent": "claude", "process": None}


def begin(store: Store, guard: Invocation, session: str | None) -> None:
    common: dict[str, Any] = {"at": MOMENT, "run": "r1", "worktree": guard.worktree_key}
    with store.change() as change:
        change.append(
            RunStarted(**common, id="e1", command=()),
            IterationStarted(**common, id="e2", iteration=1),
            SessionSeen(**common, **SEEN, session=session),
        )


@pytest.mark.parametrize(
    ("known", "expected"), [(None, ("r1", 1)), (SESSION, ("r1", 1)), ("another", (None, None))]
)
def test_a_member_is_the_iterations_if_the_session_can_be(
    known: str | None, expected: tuple[str | None, int | None], guard: Invocation
) -> None:
    begin(guard.writable_store, guard, known)
    hear("SubagentStart", agent_id="a")
    ingest_hooks(guard)
    member = members(guard)["a"]
    assert (member.run, member.iteration) == expected


def test_the_team_of_another_session_in_the_same_folder_is_not_meant(guard: Invocation) -> None:
    begin(guard.writable_store, guard, SESSION)
    hear("SubagentStart", agent_id="a")
    hear("SubagentStart", agent_id="b", session_id="another")
    hear("SessionEnd", session_id="another")
    ingest_hooks(guard)
    assert status(guard) == {"a": "active"}
    assert members(guard, "another")["b"].left_because == "killed"
    standing = teams.read_standing(
        guard.store, Scope(guard.worktree_key, SESSION, "r1", 1), guard.clock.moment()
    )
    assert standing.team is not None
    assert standing.team.active == 1


def test_a_session_that_ended_is_known_to_have(guard: Invocation) -> None:
    start = HookSessionStarted(
        at=MOMENT,
        id="e1",
        worktree=guard.worktree_key,
        agent="claude",
        event="SessionStart",
        session=SESSION,
        source="startup",
        began=False,
        detail="",
    )
    with guard.writable_store.change() as change:
        change.append(start)
    hear("SessionEnd")
    ingest_hooks(guard)
    session = hooks(guard).session("claude", SESSION)
    assert session is not None
    assert session.ended


STOPPED = '{"type":"result","subtype":"success","result":"done","session_id":"s"}\n'


@pytest.mark.parametrize(
    "words",
    [
        ("team", "show"),
        ("status",),
        ("doctor",),
        ("check", "--no-probe", "--no-wait", "--baseline", "HEAD"),
        ("gate", "--agent", "claude"),
    ],
    ids=lambda words: words[0],
)
def test_whoever_comes_next_takes_it_in(
    words: tuple[str, ...], repository: Path, home: Path
) -> None:
    commit(repository)
    hear("SubagentStart", agent_id="a")
    run(*words, stdin=STOPPED)
    assert left(home) == []
    assert status(Invocation()) == {"a": "active"}


def test_a_spool_that_cannot_be_taken_in_stops_nobody(repository: Path, tmp_path: Path) -> None:
    place = hear("SubagentStart", agent_id="a").parent
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    result = run("team", "show")
    assert result.code == 0
    assert "warning: the hooks' reports could not be recorded" in result.err


def test_without_a_work_tree_or_a_spool_nothing_happens(
    guard: Invocation, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_hooks(guard)
    assert not (home / "state").exists()
    monkeypatch.chdir(tmp_path)
    ingest_hooks(Invocation())
    assert not (home / "state").exists()


def test_a_check_that_waits_hears_of_the_end(repository: Path, home: Path) -> None:
    commit(repository)
    assert run("baseline").code == 0
    words = ("--session", SESSION, "--no-probe", "--format", "json")
    commit(repository, "work.txt")
    hear("SubagentStart", agent_id="a")
    with ending(started("check", *words, listen=True)) as process:
        _until_said(process, "waiting")
        hear("SubagentStop", agent_id="a")
        out, err = process.communicate(timeout=90)
    result = Result(process.returncode, out, err)
    assert (result.code, result.json["reason"]) == (0, "commits"), err


def _until_said(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return
    raise AssertionError("it ended without saying so")
