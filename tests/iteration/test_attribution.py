"""Whose a file is: the user's work is never committed by a rescue, whatever an agent does with it or to guard."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import commit, git, run, sessions, write


@pytest.fixture
def begun(repository: Path) -> Path:
    """A repository with one commit, with a change and a new file of the user's."""
    commit(repository, "tracked.txt")
    write(repository / "tracked.txt", "the user's\n")
    write(repository / "notes.txt", "the user's notes\n")
    return repository


def iterate(tmp_path: Path, agent: str) -> dict[str, object]:
    done = ("--probe-command", sessions.answering(tmp_path, "complete"))
    found: dict[str, object] = run(
        "run", "--format", "json", *sessions.QUICK, *done, "--", "sh", "-c", agent
    ).json
    return found


def committed(folder: Path) -> set[str]:
    """Every file that any commit but the first has touched."""
    first = git(folder, "rev-list", "--max-parents=0", "HEAD").strip()
    return set(git(folder, "log", "--format=", "--name-only", f"{first}..HEAD").split())


def test_a_push_into_the_branch_is_not_undone_by_a_rescue(repository: Path, tmp_path: Path) -> None:
    commit(repository, "tracked.txt")
    git(repository, "config", "receive.denyCurrentBranch", "ignore")
    git(tmp_path, "clone", "-q", str(repository), "clone")
    git(tmp_path / "clone", "config", "user.name", "Somebody Else")
    git(tmp_path / "clone", "config", "user.email", "else@example.com")
    pushes = "cd ../clone; echo theirs > tracked.txt; echo theirs > new.txt; git add .; git commit -qm theirs"
    found = iterate(tmp_path, f"({pushes}; git push -q origin HEAD); echo x > agents.txt")
    assert (found["reason"], found["new_commits"]) == ("rescued", 0)
    assert git(repository, "show", "--format=", "--name-only", "HEAD").split() == ["agents.txt"]
    assert git(repository, "show", "HEAD:tracked.txt") == "theirs\n"
    assert "left: nothing" in str(found["evidence"])


MOVES = {
    "renamed": "git mv tracked.txt renamed.txt",
    "moved into a folder": "mkdir docs; mv notes.txt docs/notes.txt",
    "copied": "cp notes.txt copy.txt",
}


@pytest.mark.parametrize("act", MOVES.values(), ids=MOVES)
def test_what_the_agent_moved_stays_the_users(act: str, begun: Path, tmp_path: Path) -> None:
    found = iterate(tmp_path, f"{act}; echo x > agents.txt")
    assert found["reason"] == "rescued"
    assert committed(begun) == {"agents.txt"}


def test_what_was_stashed_and_popped_stays_the_users(begun: Path, tmp_path: Path) -> None:
    iterate(tmp_path, "git stash -q -u; echo x > one.txt")
    iterate(tmp_path, "git stash pop -q; echo x > two.txt")
    assert committed(begun) == {"one.txt", "two.txt"}
    assert (begun / "notes.txt").read_text() == "the user's notes\n"
    assert (begun / "tracked.txt").read_text() == "the user's\n"


def test_what_the_user_had_stashed_before_stays_the_users(begun: Path, tmp_path: Path) -> None:
    git(begun, "stash", "push", "-q", "-u")
    found = iterate(tmp_path, "git stash pop -q; echo x > agents.txt")
    assert found["reason"] == "rescued"
    assert committed(begun) == {"agents.txt"}


def cut_off_in_the_check(tmp_path: Path, folder: Path) -> Callable[[], None]:
    """An iteration whose guard was interrupted; nothing is left to end."""
    slow = write(tmp_path / "slow", f"#!/bin/sh\necho up > {tmp_path}/up\nexec sleep 300\n")
    slow.chmod(0o755)
    agent = ("sh", "-c", "echo x > agents.txt")
    guard = sessions.started(
        "run", "--probe-command", str(slow), "--probe-timeout", "600", "--", *agent
    )
    sessions.until((tmp_path / "up").exists)
    guard.send_signal(signal.SIGINT)
    assert guard.wait(timeout=120) == 130
    return lambda: None


def left_by_its_guard(tmp_path: Path, folder: Path) -> Callable[[], None]:
    """An agent that goes on after its guard was killed; what ends it is returned."""
    agent = "echo $$ > ../pid; echo x > agents.txt; exec sleep 300"
    guard = sessions.started("run", "--no-probe", "--", "sh", "-c", agent)
    sessions.seen_by_guard(folder / "agents.txt")
    sessions.killed(guard)
    pid = int((tmp_path / "pid").read_text())
    return lambda: os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", [cut_off_in_the_check, left_by_its_guard])
def test_what_changed_after_guard_was_gone_is_not_taken_for_the_agents(
    how: Callable[[Path, Path], Callable[[], None]], begun: Path, tmp_path: Path
) -> None:
    end_agent = how(tmp_path, begun)
    time.sleep(4)
    write(begun / "later.txt", "the user's, afterwards\n")
    write(begun / "tracked.txt", "the user's, edited again\n")
    env = {"GUARD_COMPLETION_CHECK__MAX_WAIT_SECONDS": "0"}
    done = ("--probe-command", sessions.answering(tmp_path, "complete"))
    run("run", *sessions.QUICK, *done, "--no-wait", "--", "true", env=env)
    end_agent()
    run("run", *sessions.QUICK, *done, "--no-wait", "--", "true", env=env)
    run("run", *sessions.QUICK, *done, "--", "true", env=env)
    assert committed(begun) <= {"agents.txt"}
    assert (begun / "later.txt").read_text() == "the user's, afterwards\n"


def test_in_a_folder_of_very_many_files_each_has_its_owner(begun: Path, tmp_path: Path) -> None:
    write(begun / "many" / "users.txt", "the user's\n")
    agent = "for i in $(seq 2100); do echo $i > many/$i.txt; done"
    assert run("run", "--no-probe", "--no-rescue", "--", "sh", "-c", agent).code == 10
    found = iterate(tmp_path, "true")
    assert found["reason"] == "rescued"
    status = git(begun, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert sorted(status) == [" M tracked.txt", "?? many/users.txt", "?? notes.txt"]


def test_a_look_by_hand_is_no_verdict_of_the_guard_that_was_killed(
    begun: Path, tmp_path: Path
) -> None:
    end_agent = left_by_its_guard(tmp_path, begun)
    time.sleep(4)
    write(begun / "later.txt", "the user's, afterwards\n")
    env = {"GUARD_COMPLETION_CHECK__PROGRESS_WINDOW_SECONDS": "0"}
    run("check", "--no-wait", "--no-probe", env=env)
    end_agent()
    iterate(tmp_path, "true")
    assert committed(begun) == {"agents.txt"}


def test_what_the_user_does_after_an_iteration_is_not_judged_with_it(
    begun: Path, tmp_path: Path
) -> None:
    assert iterate(tmp_path, "echo x > agents.txt")["reason"] == "rescued"
    time.sleep(3)
    write(begun / "later.txt", "the user's, afterwards\n")
    done = ("--probe-command", sessions.answering(tmp_path, "complete"))
    result = run("check", *sessions.QUICK, *done, "--format", "json")
    assert (result.code, result.json["reason"]) == (0, "rescued")
    assert committed(begun) == {"agents.txt"}


def test_what_is_written_while_the_next_guard_watches_is_the_agents(
    begun: Path, tmp_path: Path
) -> None:
    busy = f"timeout 300 sh -c 'while [ ! -e {tmp_path}/go ]; do :; done'"
    helper = f"(echo up > {tmp_path}/up; {busy}; echo x > late.txt) > /dev/null 2>&1 &"
    done = ("--probe-command", sessions.answering(tmp_path, "complete"))
    first = sessions.started("run", *done, "--", "sh", "-c", f"echo x > agents.txt; {helper}")
    sessions.until((tmp_path / "up").exists)
    time.sleep(2)
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=120) == 130
    with sessions.ending(
        sessions.started("run", *sessions.QUICK, *done, "--", "true", listen=True)
    ) as second:
        assert second.stderr is not None
        said = second.stderr.readline()
        while "at work" not in said:
            assert said, "it ended without waiting"
            said = second.stderr.readline()
        time.sleep(3)
        (tmp_path / "go").touch()
        _, told = second.communicate(timeout=120)
    assert committed(begun) == {"agents.txt", "late.txt"}
    assert "iteration 1: complete: rescued" in told
