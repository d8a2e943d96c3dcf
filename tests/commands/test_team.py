"""`guard team`: what is told and refused, and many that tell it at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import pytest

from guard.cli import guard
from guard.schemas.validate import validator
from tests.support import Result, commit, run

PROCESSES = 16
NOON = {"GUARD_NOW": "2026-01-31T12:00:00Z"}


@pytest.fixture
def project(repository: Path, kept_in: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GUARD_WORKSPACE", kept_in)
    commit(repository, "first.txt")
    return repository


def team(*words: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    result = run("team", *words, "--format", "json", env=env)
    assert result.code == 0, result.err
    document: dict[str, Any] = result.json
    assert list(validator("team-report").iter_errors(document)) == []
    return document


def told(document: dict[str, Any]) -> tuple[Any, ...]:
    keys = ("recorded_as", "incarnation", "active_team_name", "active_teammate_count", "held")
    return tuple(document[key] for key in keys)


def test_a_member_from_its_spawn_to_its_end(project: Path) -> None:
    assert told(team("show")) == ("nothing", None, None, 0, False)
    words = ("spawn", "--team", "builders", "--member", "a", "--description", "reads")
    assert told(team(*words)) == ("joined", 1, "builders", 1, True)
    assert told(team("alive", "--member", "a", "--idle")) == ("alive", 1, "builders", 1, True)
    shown = team("show")
    assert told(shown) == ("nothing", None, "builders", 1, True)
    assert [(one["status"], one["description"]) for one in shown["members"]] == [("idle", "reads")]
    assert told(team("leave", "--member", "a")) == ("left", 1, "builders", 0, False)
    assert told(team("leave", "--member", "a")) == ("late", 1, "builders", 0, False)
    assert told(team("alive", "--member", "a")) == ("late", 1, "builders", 0, False)


def test_a_late_word_of_an_earlier_incarnation_changes_nothing(project: Path) -> None:
    for _ in range(2):
        spawned = team("spawn", "--team", "t", "--member", "a")
    assert told(spawned) == ("joined", 2, "t", 1, True)
    late = ("--member", "a", "--incarnation", "1")
    assert told(team("leave", *late)) == ("late", 2, "t", 1, True)
    assert told(team("alive", *late)) == ("late", 2, "t", 1, True)
    assert told(team("leave", "--member", "a", "--incarnation", "2")) == ("left", 2, "t", 0, False)


def test_a_failed_spawn_and_clear(project: Path) -> None:
    team("spawn", "--team", "t", "--member", "a")
    team("spawn", "--team", "t", "--member", "b")
    left = team("leave", "--member", "a", "--because", "spawn_failed")
    assert left["member"]["left_because"] == "spawn_failed"
    assert told(team("clear", "--reason", "by hand")) == ("cleared", None, None, 0, False)
    assert told(team("clear")) == ("cleared", None, None, 0, False)
    text = run("team", "show", "--all").out
    assert text.startswith("no team; completion is not held back\n")
    assert "b  teammate  left  incarnation 1  cleared: by hand" in text


def test_teams_of_other_sessions_are_ignored(project: Path) -> None:
    team("spawn", "--team", "mine", "--member", "a", "--session", "one")
    assert told(team("spawn", "--member", "a", "--session", "two"))[1:4] == (1, "session:two", 1)
    team("leave", "--member", "a", "--session", "two")
    assert team("show", "--session", "one")["held"]
    assert not team("show", "--session", "two")["held"]
    assert not team("show")["held"]


def test_the_lease_is_the_settings_or_the_options(project: Path) -> None:
    env = {"GUARD_TEAM__LEASE_SECONDS": "60", **NOON}
    assert team("spawn", "--member", "a", env=env)["member"]["lease_seconds"] == 60
    assert team("spawn", "--member", "b", "--lease", "30", env=env)["active_teammate_count"] == 2
    for second, counted in (("29", 2), ("30", 1), ("59", 1)):
        later = {"GUARD_NOW": f"2026-01-31T12:00:{second}Z"}
        assert team("show", env=later)["active_teammate_count"] == counted
    gone = team("show", env={"GUARD_NOW": "2026-01-31T12:01:00Z"})
    assert not gone["held"]
    assert {one["left_because"] for one in gone["members"]} == {"lease_expired"}


def test_an_expired_lease_is_recorded_with_its_reason_by_whoever_writes_next(project: Path) -> None:
    team("spawn", "--member", "ghost", env=NOON)
    later = {"GUARD_NOW": "2026-01-31T13:00:00Z"}
    team("spawn", "--member", "other", env=later)
    events = run("log", "--format", "json").json["events"]
    (left,) = [one for one in events if one["type"] == "team_member_left"]
    assert (left["member"], left["because"]) == ("ghost", "lease_expired")
    assert left["detail"] == "no sign of life for 3600 s; its lease was 1800 s"


REFUSED: dict[str, tuple[int, tuple[str, ...]]] = {
    "leave of an unknown member": (1, ("leave", "--member", "x")),
    "alive of an unknown member": (1, ("alive", "--member", "x")),
    "no member": (2, ("spawn", "--team", "t")),
    "an empty member": (2, ("spawn", "--member", "")),
    "a member without end": (2, ("spawn", "--member", "x" * 513)),
    "an unknown kind": (2, ("spawn", "--member", "x", "--kind", "robot")),
    "an unknown reason": (2, ("leave", "--member", "x", "--because", "boredom")),
    "a lease of nothing": (2, ("spawn", "--member", "x", "--lease", "0")),
    "a lease without end": (2, ("spawn", "--member", "x", "--lease", "inf")),
    "bytes that are no text": (2, ("spawn", "--member", "\udcff")),
}


@pytest.mark.parametrize(("code", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_with_a_hint_and_without_a_record(
    code: int, words: tuple[str, ...], project: Path
) -> None:
    result: Result = run("team", *words)
    assert (result.code, result.out) == (code, "")
    assert "hint: " in result.err
    assert len(result.err.splitlines()) == 2
    assert told(team("show")) == ("nothing", None, None, 0, False)


WRONG = {
    f"{name} of {word}": (name, *words, option, text)
    for name, words, options in (
        ("spawn", ("--member", "a"), ("--team", "--session", "--member")),
        ("leave", ("--member", "a"), ("--session", "--member", "--because")),
        ("alive", ("--member", "a"), ("--session", "--member")),
        ("clear", (), ("--session",)),
        ("show", (), ("--session",)),
    )
    for option in options
    for word, text in (
        (("lease_expired", "lease_expired"), ("cleared", "cleared"))
        if option == "--because"
        else ((f"an empty {option}", ""), (f"a blank {option}", " \t"))
    )
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_words_are_refused_before_anything_is_looked_at(words: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError):
        guard.main(["team", *words], standalone_mode=False)


def test_who_joined_an_earlier_iteration_without_a_session_is_not_shown(project: Path) -> None:
    team("spawn", "--team", "early", "--member", "a")
    run("baseline")
    assert told(team("show")) == ("nothing", None, None, 0, False)
    team("spawn", "--team", "late", "--member", "b")
    shown = team("show")
    assert [one["member"] for one in shown["members"]] == ["b"]
    assert shown["active_teammate_count"] == 1
    run("baseline")
    assert told(team("show")) == ("nothing", None, None, 0, False)


def test_hostile_names_reach_no_path_and_no_terminal(project: Path) -> None:
    name = "../../\x1b[31m\u202e"
    assert team("spawn", "--member", name, "--team", name, "--session", name)["held"]
    result = run("team", "show", "--session", name)
    assert "\x1b" not in result.out
    assert "\u202e" not in result.out


@pytest.mark.long
def test_many_processes_at_once_lose_nothing(project: Path) -> None:
    """Each counts a member of its own and one that all share, and lets go of its own if its number is even."""
    numbers = range(PROCESSES)
    for words in (
        lambda n: ("spawn", "--team", f"t{n}", "--member", f"m{n}"),
        lambda _: ("spawn", "--member", "shared"),
        lambda n: ("leave" if n % 2 == 0 else "alive", "--member", f"m{n}"),
    ):
        with ThreadPoolExecutor(PROCESSES) as all_at_once:
            ended = all_at_once.map(lambda n, words=words: run("team", *words(n)), numbers)
            assert [result.code for result in ended] == [0] * PROCESSES
    state = team("show")
    counting = {one["member"]: one["incarnation"] for one in state["members"] if not one["left_at"]}
    assert counting == {f"m{n}": 1 for n in numbers if n % 2} | {"shared": PROCESSES}
    assert state["active_teammate_count"] == PROCESSES // 2 + 1
    assert run("verify").code == 0
