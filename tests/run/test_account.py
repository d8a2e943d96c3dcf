"""`fleet.account`: one account's usage limit pauses every loop that shares it, until the reset."""

import time
from pathlib import Path

import pytest

from guard.context.account import account_seconds, hold_account
from guard.context.invocation import Invocation
from tests.support import commit, new_repository, run, write

SHARED = {"GUARD_FLEET__ACCOUNT": "team"}


@pytest.fixture(params=["files", "postgres"])
def other(
    request: pytest.FixtureRequest,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A second repository; the test stands in the first. With a server, both have their state there."""
    commit(repository)
    if request.param == "postgres":
        monkeypatch.setenv("GUARD_WORKSPACE", str(request.getfixturevalue("dsn")))
    return new_repository(tmp_path / "second", "x.txt")


def limited(until: float) -> tuple[str, ...]:
    return ("sh", "-c", f"echo 'Claude AI usage limit reached|{until:.0f}'; exit 1")


def loop(cwd: Path, seconds: int, env: dict[str, str]) -> tuple[int, int, str]:
    """How a loop ended, and how often its agent was started."""
    mark = cwd.parent / "starts"
    write(mark, "")
    words = ("--max-iterations", "1", "--max-time", f"{seconds}", "--no-probe")
    agent = ("sh", "-c", f"echo x >> {mark}")
    done = run("loop", *words, "--", *agent, cwd=cwd, env=env)
    return done.code, len(mark.read_text().split()), done.err


def test_a_limit_of_one_repository_pauses_the_loops_of_another(other: Path) -> None:
    ended = run("run", "--agent", "claude", "--", *limited(time.time() + 3600), env=SHARED)
    assert ended.code == 13, ended.out + ended.err
    _, starts, said = loop(other, 2, SHARED)
    assert starts == 0
    assert "account team is at its usage limit" in said
    for env in ({}, {"GUARD_FLEET__ACCOUNT": "another"}):
        assert loop(other, 60, env)[1] == 1


def test_it_begins_again_after_the_reset(other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_FLEET__ACCOUNT", "team")
    begun = time.monotonic()
    guard = Invocation()
    hold_account(guard, 4)
    assert 0 < account_seconds(guard) <= 4
    assert loop(other, 120, SHARED)[1] == 1
    assert time.monotonic() - begun >= 4
    assert account_seconds(guard) == 0


def test_a_limit_never_ends_earlier_because_of_a_shorter_one(
    other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_FLEET__ACCOUNT", "team")
    guard = Invocation()
    hold_account(guard, 1000)
    hold_account(guard, 1)
    assert account_seconds(guard) > 900


def test_without_a_name_nothing_is_shared(other: Path) -> None:
    guard = Invocation()
    hold_account(guard, 1000)
    assert account_seconds(guard) == 0
