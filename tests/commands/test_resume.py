"""`guard resume` as a person types it."""

import json
from pathlib import Path

import pytest

from tests.commands.test_run import LIMIT
from tests.support import NOW, commit, run, write

LATER = {"GUARD_NOW": "2026-01-31T15:00:00Z"}


@pytest.fixture(autouse=True)
def silent(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that said something three hours ago."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    commit(repository, "first.txt")
    monkeypatch.setenv("GUARD_NOW", NOW)
    words = ("--task", "T1", "--agent", "a1", "--message", "The form has its fields.")
    assert run("agent", "spawn", *words).code == 0


def test_the_prompt_is_printed_and_nothing_is_sent() -> None:
    result = run("resume", "a1", env=LATER)
    assert result.code == 0, result.err
    assert result.out.startswith("[stall-recovery] guard to agent a1, task T1")
    assert "> The form has its fields." in result.out
    document = run("resume", "a1", "--format", "json", env=LATER).json
    assert (document["schema"], document["outcome"]) == ("guard/resume/1", "written")
    assert document["prompt"].strip() == result.out.strip()


def test_a_prompt_that_is_only_printed_claims_no_task(repository: Path) -> None:
    write(repository / "plan.md", "- [ ] P1: Read the plan\n")
    assert run("plan", "load", "plan.md").code == 0
    (repository / ".agents/a1/inbox").mkdir(parents=True)
    shown = run("resume", "a1", "--format", "json", env=LATER).json
    assert (shown["next_task"]["id"], shown["claimed"]) == ("P1", False)
    assert run("plan", "show", "--format", "json").json["active_developers"] == {}
    sent = run("resume", "a1", "--send", "--format", "json", env=LATER).json
    assert (sent["next_task"]["id"], sent["claimed"]) == ("P1", True)


def test_an_agent_at_work_gets_none_and_one_that_nobody_knows_is_an_error() -> None:
    words = ("--task", "T1", "--agent", "a1", "--status", "working", "--message", "The form posts.")
    assert run("agent", "update", *words, env=LATER).code == 0
    result = run("resume", "a1", env=LATER)
    assert (result.code, result.out) == (
        1,
        "a1 of T1 (working): active: it is active: 1 source of tier 1 (TELEMETRY_EVENT): 0.7\n",
    )
    assert run("resume", "a1", "--no-activity-check", env=LATER).code == 0
    assert run("resume", "a1", env={**LATER, "GUARD_RESUME__VALIDATE_ACTIVITY": "false"}).code == 0
    result = run("resume", "nobody", env=LATER)
    assert (result.code, "no agent nobody" in result.err) == (1, True)


def test_two_are_sent_and_then_a_person_is_needed(repository: Path) -> None:
    inbox = repository / ".agents/a1/inbox"
    inbox.mkdir(parents=True)
    env = {**LATER, "GUARD_RESUME__PAUSE_MINUTES": "0"}
    codes = [run("resume", "a1", "--send", env=env).code for _ in range(2)]
    result = run("resume", "--all", "--send", "--format", "json", env=env)
    assert [*codes, result.code] == [0, 0, 14]
    assert json.loads(result.out)["outcome"] == "spent"
    assert len(list(inbox.iterdir())) == 2


def test_the_look_back_and_the_way_are_options(repository: Path) -> None:
    (repository / ".agents/a1/inbox").mkdir(parents=True)
    report = run("resume", "a1", "--lookback", "600", "--format", "json", env=LATER)
    assert report.code == 0
    assert run("resume", "a1", "--send", "--by", "tmux", env=LATER).code == 1
    by = {**LATER, "GUARD_RESUME__BY": "command"}
    result = run("resume", "a1", "--send", env=by)
    assert (result.code, "`resume.command` is not set" in result.out) == (1, True)


def test_a_limit_holds_a_prompt_back(repository: Path, tmp_path: Path) -> None:
    (repository / ".agents/b1/inbox").mkdir(parents=True)
    argv = ("run", "--agent", "claude", "--no-probe", "--task", "T1", "--agent-id", "b1", "--")
    limit = write(tmp_path / "limit", LIMIT)
    result = run(*argv, "sh", "-c", f"cat {limit}; exit 1")
    assert result.code == 13, result.out + result.err
    result = run("resume", "b1", "--send", "--no-activity-check", "--format", "json", env=LATER)
    assert (result.code, result.json["outcome"]) == (13, "limited"), result.out
    assert result.json["retry_at"] == "2026-02-01T05:00:00Z"
    text = run("resume", "b1", "--no-activity-check", env=LATER).out
    assert "try again after 2026-02-01 05:00 UTC" in text


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("a1", "--all"),
        ("--all", "--task", "T1"),
        ("a1", "--watch"),
        ("--all", "--watch"),
        ("a1", "--by", "inbox"),
        ("a1", "--send", "--by", "pigeon"),
        ("a1", "--lookback", "0"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...]) -> None:
    assert run("resume", *words).code == 2


def test_lost_helpers_and_an_open_breaker_are_told() -> None:
    assert run("team", "spawn", "--member", "tests", "--kind", "background_shell").code == 0
    assert run("team", "leave", "--member", "tests", "--because", "killed").code == 0
    assert run("team", "spawn", "--member", "docs").code == 0
    assert run("team", "leave", "--member", "docs").code == 0
    assert run("breaker", "trip", "--reason", "it goes in circles").code == 0
    text = run("resume", "a1", env=LATER).out
    assert "Helpers that were lost:\n- background_shell tests: killed\n" in text
    assert "- the breaker is open: " in text
    assert "docs" not in text
