"""A session wants to stop: what is left is named, and what is not its own never is."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from guard import team as teams
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.hooks.events import HookSessionStarted
from guard.core.hooks.payload import HookCall
from guard.core.team.change import Joined
from guard.core.team.state import Scope
from guard.hooks.agent import payload
from guard.hooks.agent.boundary import answer
from guard.hooks.agent.payload import MOST_BYTES
from guard.hooks.agent.stop import decide_stop
from tests.support import commit, git, run, write
from tests.support.hooks import (
    STOPS,
    decisions,
    events,
    faults,
    hooks,
    observe,
    read,
    start,
    stop,
)
from tests.support.hooks import document as stdin

AGENTS = sorted(STOPS)
PROMPTS = {**dict.fromkeys(AGENTS, "UserPromptSubmit"), "gemini": "BeforeAgent"} | {
    "copilot": "userPromptSubmitted"
}
SHELL = {"id": "b1", "type": "shell", "status": "running", "description": "a long job"}


@pytest.fixture
def project(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


@pytest.fixture
def session(project: Path) -> Path:
    """A repository in which session s1 of Claude Code has begun."""
    write(project / "users.txt", "the user's own\n")
    write(project / "first.txt", "changed by the user\n")
    assert start() == ""
    return project


def asked_at_four_stops(agent: str, data: bytes) -> list[bool]:
    """Whether the agent is to go on, at each of four stops with the same document."""
    return ["decision" in read(answer(agent, STOPS[agent], data, os.environ)) for _ in range(4)]


def asked(answer: dict[str, str]) -> str:
    """The reason for which the agent is to go on."""
    assert set(answer) == {"decision", "reason"}
    assert answer["decision"] == "block"
    return answer["reason"]


def spawn(member: str, session: str | None = "s1", lease: float = 600) -> None:
    guard = Invocation()
    scope, moment = Scope(guard.worktree_key, session), guard.clock.moment()
    change = Joined(member, "subagent", "digs")
    teams.record(guard.writable_store, scope, moment, [change], lease_seconds=lease)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_uncommitted_file_blocks_once_and_its_commit_releases(project: Path, agent: str) -> None:
    write(project / "users.txt", "the user's own\n")
    start(agent)
    write(project / "made.txt", "by the agent\n")
    said = asked(stop(agent))
    assert "made.txt" in said
    assert "users.txt" not in said
    git(project, "add", "made.txt")
    git(project, "commit", "-q", "-m", "Add what the agent made")
    assert stop(agent, stop_hook_active=True) == {}
    assert decisions() == [("blocked", "uncommitted", 1), ("released", "clean", 1)]
    assert faults() == ""


@pytest.mark.parametrize("agent", AGENTS)
def test_the_cap_ends_every_loop(project: Path, agent: str) -> None:
    start(agent)
    write(project / "made.txt", "by the agent\n")
    answers = [stop(agent, stop_hook_active=bool(number)) for number in range(4)]
    assert ["decision" in one for one in answers] == [True, True, False, False]
    for last in answers[2:]:
        assert list(last) == ([] if agent == "copilot" else ["systemMessage"])
        assert "made.txt" in last.get("systemMessage", "made.txt")
    assert [one[1:] for one in decisions()] == [
        ("uncommitted", 1),
        ("uncommitted", 2),
        ("cap", 2),
        ("cap", 2),
    ]


@pytest.mark.parametrize("active", [False, True, None])
@pytest.mark.parametrize("agent", AGENTS)
def test_the_cap_ends_a_loop_whatever_the_host_says(
    project: Path, agent: str, active: bool | None
) -> None:
    start(agent)
    write(project / "made.txt", "by the agent\n")
    asked = ["decision" in stop(agent, stop_hook_active=active) for _ in range(7)]
    assert asked == [True, True, *[False] * 5]


@pytest.mark.parametrize("agent", AGENTS)
def test_only_a_prompt_of_the_user_begins_the_count_anew(project: Path, agent: str) -> None:
    """Without ids the hook for prompts tells; guard's own words in it, and no words, are no prompt of the user's."""
    start(agent)
    write(project / "made.txt", "by the agent\n")
    nameless: dict[str, Any] = {
        "prompt_id": None,
        "turn_id": None,
        "agent_id": None,
        "stop_hook_active": False,
    }

    def prompt(text: str | None, session: str = "s1", helper: str | None = None) -> None:
        told = {**nameless, "prompt": text, "agent_id": helper}
        observe(agent, PROMPTS[agent], session, **told)

    prompt("Write it.")
    said, *_ = (stop(agent, **nameless).get("reason", "") for _ in range(3))
    for text in ("", " \n", said, f"Stop hook feedback:\n{said}", None):
        prompt(text)
    prompt("Write it.", helper="child-1")
    prompt("Write it.", session="s2")
    assert "decision" not in stop(agent, **nameless)
    prompt("Write it.")
    assert ["decision" in stop(agent, **nameless) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    "data",
    [b"{", b"", b"[]", b'{"stop_hook_active": false, "x": "' + b"x" * MOST_BYTES + b'"}'],
    ids=["cut off", "empty", "no object", "too large"],
)
@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_the_cap_ends_also_a_loop_of_documents_that_cannot_be_read(
    project: Path, agent: str, data: bytes
) -> None:
    assert run("baseline").code == 0
    write(project / "made.txt", "by the agent\n")
    assert asked_at_four_stops(agent, data) == [True, True, False, False]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_cap_ends_also_a_loop_of_documents_that_lack_what_tells_it(
    project: Path, agent: str
) -> None:
    start(agent)
    write(project / "made.txt", "by the agent\n")
    told = {"sessionId": "s1", "session_id": "s1", "cwd": str(project), "stopReason": "end_turn"}
    data = json.dumps(told).encode()
    assert asked_at_four_stops(agent, data) == [True, True, False, False]
    stop(agent, stop_hook_active=False)
    assert decisions()[-1][1] == "cap"


def test_another_prompt_is_asked_anew(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    asked(stop(prompt_id="p1"))
    asked(stop(prompt_id="p1", stop_hook_active=True))
    assert "decision" not in stop(prompt_id="p1", stop_hook_active=True)
    asked(stop(prompt_id="p2"))


@pytest.mark.parametrize("agent", AGENTS)
def test_two_hooks_that_are_called_at_once_count_once_at_every_stop(
    project: Path, agent: str
) -> None:
    start(agent)
    write(project / "made.txt", "by the agent\n")
    for number in (1, 2):
        both = [called(agent, stop_hook_active=number > 1) for _ in range(2)]
        first, second = (decide_stop(Invocation(), call, lambda: 30.0) for call in both)
        assert first is not None
        assert second is not None
        assert (first.decision, first.text) == ("blocked", second.text)
        assert [one[2] for one in decisions()] == list(range(1, number + 1))
    both = [called(agent, stop_hook_active=True) for _ in range(2)]
    last = [decide_stop(Invocation(), call, lambda: 30.0) for call in both]
    assert [one and one.decision for one in last] == ["released", "released"]


def called(agent: str, **more: Any) -> HookCall:
    """What the hook for a stop was told, and when, before anything is decided."""
    event = STOPS[agent]
    data = stdin(agent, event, **{"background_tasks": [], **more})
    told = payload.read_payload(agent, event, data, os.environ)
    return HookCall.model_validate_json(json.dumps(told))


@pytest.mark.parametrize("most", [0, 1, 3])
def test_max_blocks_is_how_often_it_is_asked(
    session: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setenv("GUARD_HOOKS__MAX_BLOCKS", str(most))
    write(session / "made.txt", "by the agent\n")
    answers = [stop(stop_hook_active=bool(number)) for number in range(5)]
    assert sum("decision" in one for one in answers) == most
    assert {reason for _, reason, _ in decisions()} == ({"uncommitted", "cap"} if most else {"off"})


def test_what_was_there_before_is_never_named(session: Path) -> None:
    assert stop() == {}
    write(session / "users.txt", "the user's own, and something of the agent's\n")
    assert stop() == {}, "mixed with the user's: nobody else may commit it"
    write(session / "made.txt", "by the agent\n")
    write(session / ".gitignore", "ignored\n")
    write(session / "ignored", "x\n")
    write(session / ".env", "SECRET=1\n")
    said = asked(stop())
    assert "made.txt" in said
    assert "2 files are" in said
    to_commit, _, not_to_commit = said.partition("Do not commit these")
    assert not_to_commit.endswith("made for secrets:\n- .env")
    for name in ("users.txt", "first.txt", "ignored\n", ".env"):
        assert name not in to_commit


def test_names_of_files_are_made_harmless(session: Path) -> None:
    write(session / "a\nnew line \x1b[31m", "x\n")
    (session / os.fsdecode(b"no\xffutf8")).write_text("x")
    said = asked(stop())
    assert "a\\x0anew line \\x1b[31m" in said
    assert "no\\xffutf8" in said


def test_a_session_that_was_away_is_not_asked_for_what_the_user_did_meanwhile(
    session: Path,
) -> None:
    write(session / "meanwhile.txt", "by the user\n")
    time.sleep(2.2)  # Longer than the slack by which times of files are compared.
    start(source="resume")
    assert stop() == {}
    write(session / "made.txt", "by the agent\n")
    said = asked(stop())
    assert "made.txt" in said
    assert "meanwhile.txt" not in said


def test_what_a_session_left_before_it_was_resumed_is_still_its_own(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    assert "made.txt" in asked(stop())
    for away in ("first", "second"):
        write(session / f"{away}.txt", "by the user\n")
        time.sleep(2.2)
        start(source="resume")
        said = asked(stop())
        assert "made.txt" in said
        assert "1 file is" in said, away


def test_a_session_that_told_its_end_was_there_until_then(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    observe("claude", "SessionEnd")
    write(session / "meanwhile.txt", "by the user\n")
    time.sleep(2.2)
    start(source="resume")
    said = asked(stop())
    assert "made.txt" in said
    assert "meanwhile.txt" not in said


def test_a_clock_that_was_set_back_hides_nothing(session: Path) -> None:
    """Of the start the wall clock then says that it is yet to come; the clock that nobody sets does not."""
    guard, seconds = Invocation(), 600
    moment = guard.clock.moment()
    before = HookSessionStarted(
        at=moment.now + timedelta(seconds=seconds),
        id=new_id(),
        worktree=guard.worktree_key,
        agent="claude",
        event="SessionStart",
        session="s1",
        source="resume",
        began=False,
        detail="",
        boot_seconds=moment.boot_seconds,
        boot_id=moment.boot_id,
    )
    with guard.writable_store.change() as change:
        change.append(before)
    write(session / "made.txt", "by the agent\n")
    assert "made.txt" in asked(stop())


def test_compaction_is_no_new_start(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    time.sleep(2.2)
    start(source="compact")
    assert "made.txt" in asked(stop())


def test_without_a_baseline_nothing_can_be_said(project: Path) -> None:
    write(project / "made.txt", "by somebody\n")
    assert stop() == {}
    assert decisions() == [("released", "no_baseline", 0)]
    spawn("m1")
    assert "subagent m1 (digs)" in asked(stop("codex"))


def test_another_session_that_works_from_the_baseline_is_not_disturbed(session: Path) -> None:
    write(session / "made.txt", "by the agent of s1\n")
    start(session="s2")
    assert stop(session="s2") == {}
    assert decisions() == [("released", "no_baseline", 0)]
    assert "made.txt" in asked(stop())


def test_what_the_host_waits_for_passes(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    assert stop(background_tasks=[SHELL]) == {}
    assert stop(background_tasks=[], session_crons=[{"id": "c1"}]) == {}
    assert decisions() == [("released", "waiting", 0)] * 2
    held: list[Any] = events("completion_held")
    assert [(one.reason, one.session, one.count) for one in held] == [
        ("waiting", "s1", 1),
        ("waiting", "s1", 1),
    ]
    assert "made.txt" in asked(stop(background_tasks=[]))
    released: list[Any] = events("completion_released")
    assert [one.reason for one in released] == ["uncommitted"]


def test_a_codex_subagent_is_waited_for(project: Path) -> None:
    start("codex")
    observe("codex", "SubagentStart", agent_id="child-1", agent_type="explorer")
    said = asked(stop("codex"))
    assert "child-1" in said
    assert "wait_agent" in said
    observe("codex", "SubagentStop", agent_id="child-1", agent_type="explorer")
    assert stop("codex", stop_hook_active=True) == {}
    assert decisions() == [("blocked", "team", 1), ("released", "clean", 1)]


def test_the_team_of_another_session_is_ignored(project: Path) -> None:
    start("codex")
    spawn("m1", "s2")
    observe("codex", "SubagentStart", session="s2", agent_id="child-1")
    assert stop("codex") == {}
    assert decisions() == [("released", "clean", 0)]
    assert "m1" in asked(stop("codex", "s2"))


def test_a_ghost_holds_nothing(project: Path) -> None:
    start("codex")
    spawn("ghost", lease=0.001)
    time.sleep(0.01)
    assert stop("codex") == {}
    spawn("living")
    said = asked(stop("codex"))
    assert "living" in said
    assert "ghost" not in said


def test_a_member_that_was_registered_by_hand_holds(project: Path) -> None:
    start("gemini")
    assert run("team", "spawn", "--team", "t", "--member", "researcher").code == 0
    assert "researcher" in asked(stop("gemini"))
    assert run("team", "leave", "--member", "researcher").code == 0
    assert stop("gemini", stop_hook_active=True) == {}


def test_a_member_registered_by_hand_is_not_ended_by_a_list_that_lacks_it(session: Path) -> None:
    words = ("--member", "outside", "--session", "s1")
    assert run("team", "spawn", *words, "--kind", "subagent").code == 0
    assert "outside" in asked(stop(background_tasks=[]))
    observe("claude", "SessionEnd", "s1")
    shown = run("team", "show", "--session", "s1", "--format", "json").json
    assert [one["member"] for one in shown["members"]] == ["outside"]
    assert run("team", "leave", *words).code == 0
    assert stop(background_tasks=[]) == {}


def test_a_session_that_calls_the_hooks_of_two_agents_is_one(project: Path) -> None:
    start("copilot", "s1", source="new")
    assert start("claude", "s1") == ""
    write(project / "page.html", "left\n")
    for number in (1, 2):
        asked(stop("copilot", "s1", stop_hook_active=number > 1))
    assert "decision" not in stop("claude", "s1", stop_hook_active=True)
    assert [one.session for one in hooks().sessions] == ["s1"]


def test_who_joined_before_the_session_was_known_is_that_sessions(project: Path) -> None:
    assert run("baseline").code == 0
    assert run("team", "spawn", "--team", "t", "--member", "early").code == 0
    start("codex")
    assert stop("codex", "s2") == {}
    assert "early" in asked(stop("codex"))


def test_opencode_is_let_go_and_what_is_left_is_recorded(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    told = json.dumps({"sessionID": "s1", "cwd": str(session)}).encode()
    assert answer("opencode", "session.idle", told, os.environ) == ""
    assert decisions() == [("released", "uncommitted", 0)]


def test_a_limit_or_a_failure_always_passes(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    assert stop(last_assistant_message="You've hit your 5-hour limit · resets 3am (UTC)") == {}
    assert stop(last_assistant_message="API Error: 401 please run /login") == {}
    assert stop("copilot", stopReason="error") == {}
    assert [reason for _, reason, _ in decisions()] == ["limited", "auth", "failed"]


def test_the_turn_of_a_helper_is_not_the_sessions(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    assert stop("codex", agent_id="child-1") == {}
    assert decisions() == []


def test_the_hooks_view_shows_what_was_decided(session: Path) -> None:
    write(session / "made.txt", "by the agent\n")
    stop(prompt_id="p7")
    (found,) = hooks().sessions
    assert (found.session, found.prompt, found.blocks, found.decision, found.reason) == (
        "s1",
        "p7",
        1,
        "blocked",
        "uncommitted",
    )
    assert [(one.event, one.count) for one in hooks().calls] == [("SessionStart", 1), ("Stop", 1)]
