"""`guard check` with a team: its verdicts wait for the session's own helpers, and for nobody else's."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support import commit, git, run, write
from tests.support.sessions import QUICK, answering, asked, ending, hear, started

NOON, LATER = "2026-01-31T12:00:00Z", "2026-01-31T12:29:00Z"


@pytest.fixture
def begun(repository: Path) -> Path:
    """A repository with one commit and a baseline."""
    commit(repository, "first.txt")
    assert run("baseline").code == 0
    return repository


def team(*words: str, **env: str) -> None:
    result = run("team", *words, env=env)
    assert result.code == 0, result.err


def look(*words: str, **env: str) -> tuple[int, str, Any]:
    result = run("check", "--no-wait", "--no-probe", "--format", "json", *words, env=env)
    assert result.out, result.err
    return result.code, f"{result.json['status']} {result.json['reason']}", result.json["team"]


@pytest.mark.parametrize("commits", [0, 1], ids=["no commits", "commits"])
def test_an_active_member_holds_the_verdict_until_it_leaves(commits: int, begun: Path) -> None:
    for number in range(commits):
        commit(begun, f"{number}.txt")
    team("spawn", "--team", "builders", "--member", "a")
    assert look() == (11, "waiting team", {"name": "builders", "active": 1})
    team("alive", "--member", "a", "--idle")
    assert look()[0] == 11
    team("leave", "--member", "a")
    said = (0, "complete commits") if commits else (10, "timeout no_commits")
    assert look() == (*said, {"name": "builders", "active": 0})


def test_clear_lets_the_verdict_go(begun: Path) -> None:
    commit(begun, "a.txt")
    team("spawn", "--team", "builders", "--member", "a")
    assert look()[0] == 11
    team("clear")
    assert look() == (0, "complete commits", None)


def test_another_sessions_team_in_the_same_folder_is_ignored(begun: Path) -> None:
    commit(begun, "a.txt")
    team("spawn", "--team", "builders", "--member", "a", "--session", "theirs")
    assert look("--session", "theirs")[:2] == (11, "waiting team")
    assert look("--session", "mine") == (0, "complete commits", None)


def test_a_member_of_an_earlier_iteration_without_a_session_is_ignored(begun: Path) -> None:
    team("spawn", "--team", "builders", "--member", "a")
    assert run("baseline").code == 0
    commit(begun, "a.txt")
    assert look() == (0, "complete commits", None)


def test_who_joined_before_the_session_was_known_counts_and_can_leave(begun: Path) -> None:
    commit(begun, "a.txt")
    team("spawn", "--team", "builders", "--member", "a")
    assert look("--session", "s1")[:2] == (11, "waiting team")
    team("leave", "--member", "a", "--session", "s1")
    assert look("--session", "s1")[:2] == (0, "complete commits")


def test_a_ghost_whose_lease_ran_out_releases_and_the_check_records_it(begun: Path) -> None:
    commit(begun, "a.txt")
    team("spawn", "--team", "builders", "--member", "ghost", GUARD_NOW=NOON)
    assert look(GUARD_NOW="2026-01-31T12:29:59Z")[:2] == (11, "waiting team")
    assert look(GUARD_NOW="2026-01-31T12:30:00Z")[:2] == (0, "complete commits")
    events = run("log", "--format", "json").json["events"]
    (left,) = [one for one in events if one["type"] == "team_member_left"]
    assert (left["member"], left["because"]) == ("ghost", "lease_expired")


@pytest.mark.parametrize(
    ("limit", "said"),
    [("3600", "waiting team"), ("1700", "timeout hung")],
    ids=["not for long enough", "for too long"],
)
def test_a_member_that_only_says_it_is_idle_hangs_in_the_end(
    limit: str, said: str, begun: Path
) -> None:
    knob = {"GUARD_COMPLETION_CHECK__MAX_WAIT_SECONDS": limit}
    team("spawn", "--team", "builders", "--member", "a", GUARD_NOW=NOON)
    team("alive", "--member", "a", "--idle", GUARD_NOW="2026-01-31T12:20:00Z")
    assert look(**knob, GUARD_NOW=LATER)[1] == said
    team("alive", "--member", "a", GUARD_NOW=LATER)
    assert look(**knob, GUARD_NOW="2026-01-31T12:30:00Z")[1] == "waiting team"


def test_a_member_with_a_long_lease_and_no_sign_of_life_hangs(begun: Path) -> None:
    team("spawn", "--team", "t", "--member", "a", "--lease", "86400", GUARD_NOW=NOON)
    assert look(GUARD_NOW="2026-01-31T13:59:59Z")[:2] == (11, "waiting team")
    assert look(GUARD_NOW="2026-01-31T14:00:00Z")[:2] == (10, "timeout hung")


def test_nothing_is_committed_under_the_hands_of_a_member(begun: Path, tmp_path: Path) -> None:
    write(begun / "new.py", "print(1)\n")
    team("spawn", "--team", "t", "--member", "a")
    words = (*QUICK, "--probe-command", answering(tmp_path, "complete"))
    with ending(started("check", *words, "--format", "json", listen=True)) as check:
        hear(check, "waiting")
        assert (check.poll(), asked(tmp_path)) == (None, 0)
        assert git(begun, "status", "--porcelain") == "?? new.py\n"
        team("leave", "--member", "a")
        out, err = check.communicate(timeout=120)
    assert check.returncode == 0, err
    assert '"reason": "rescued"' in out


_READS = "import time\nwhile True:\n    open('/dev/zero', 'rb', 0).read(9)\n    time.sleep(0.05)\n"


@pytest.mark.parametrize("busy", [False, True], ids=["alone", "beside a busy process"])
def test_a_wait_for_a_team_ends_when_its_last_member_leaves(busy: bool, begun: Path) -> None:
    commit(begun, "a.txt")
    team("spawn", "--team", "builders", "--member", "a")
    with ExitStack() as alive:
        if busy:
            alive.enter_context(ending(subprocess.Popen([sys.executable, "-c", _READS])))
        words = ("check", "--no-probe", "--format", "json")
        check = alive.enter_context(ending(started(*words, listen=True)))
        hear(check, "waiting")
        assert check.poll() is None
        team("leave", "--member", "a")
        out, err = check.communicate(timeout=120)
    assert check.returncode == 0, err
    assert '"reason": "commits"' in out
