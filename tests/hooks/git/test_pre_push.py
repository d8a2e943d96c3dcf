"""The gate at a push: what it sees, and that it changes nothing."""

from pathlib import Path

import pytest

from guard.core.hooks.git.push_gate import PushState, findings
from tests.support import commit, git, run, write
from tests.support.git_hooks import tried

FOUND = {
    "nothing": (PushState(), []),
    "uncommitted": (PushState(uncommitted=("a", "b", "c", "d")), ["uncommitted"]),
    "unverifiable wins over what is seen": (
        PushState(uncommitted=("a",), unverifiable="hidden"),
        ["unverifiable"],
    ),
    "breaker": (PushState(breaker_open="stalled"), ["breaker"]),
    "rescue branches": (
        PushState(rescues=("guard/rescue/r-1", "guard/rescue/r-2")),
        ["rescue"] * 2,
    ),
    "refused rescue": (PushState(refused_rescue="secrets"), ["rescue"]),
    "held": (PushState(held_by=("team", 2)), ["held"]),
    "all": (
        PushState(("a",), None, "x", ("guard/rescue/r-1",), "y", ("t", 1)),
        ["uncommitted", "breaker", "rescue", "rescue", "held"],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_each_finding_has_its_code_and_something_to_do(name: str) -> None:
    seen, codes = FOUND[name]
    found = list(findings(seen))
    assert [one.code for one in found] == codes
    assert all(one.hint and "\n" not in one.found for one in found)


@pytest.fixture
def remote(hooked: Path, tmp_path: Path) -> str:
    commit(hooked)
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    return str(tmp_path / "remote.git")


def test_a_clean_tree_is_pushed_and_what_is_left_behind_is_not(hooked: Path, remote: str) -> None:
    git(hooked, "push", "-q", remote, "main")
    write(hooked / "left\x1b.txt", "left")
    refused = tried(hooked, "push", "-q", remote, "main:other")
    assert refused.returncode != 0
    assert "1 file not committed: left\\x1b.txt" in refused.stderr
    assert "git push --no-verify" in refused.stderr
    git(hooked, "push", "-q", "--no-verify", remote, "main:other")
    assert tried(hooked, "push", "-q", remote, "main:third", GUARD_SKIP="pre-push").returncode == 0
    git(hooked, "push", "-q", remote, ":other")


def test_an_open_breaker_a_helper_and_a_rescue_hold_a_push_back(hooked: Path, remote: str) -> None:
    assert run("baseline").code == 0
    assert run("breaker", "trip", "--reason", "by hand").code == 0
    assert run("team", "spawn", "--team", "builders", "--member", "m1").code == 0
    git(hooked, "switch", "-qc", "guard/rescue/r-1")
    git(hooked, "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "rescued")
    git(hooked, "switch", "-q", "main")
    before = git(hooked, "status", "--porcelain", "--branch")
    said = tried(hooked, "push", "-q", remote, "main").stderr
    assert "the breaker is open" in said
    assert "1 helper of builders at work" in said
    assert "rescued work is only on guard/rescue/r-1" in said
    git(hooked, "merge", "-q", "guard/rescue/r-1")
    assert "rescued work" not in tried(hooked, "push", "-q", remote, "main").stderr
    assert git(hooked, "status", "--porcelain", "--branch") == before


def test_while_a_commit_is_made_nobody_can_tell(hooked: Path) -> None:
    commit(hooked)
    done = run("hook", "git", "pre-push", env={"GIT_INDEX_FILE": ".git/index"})
    assert done.code == 1
    assert "unverifiable" in done.err


def test_a_folder_of_the_work_tree_is_as_good_as_its_top(
    hooked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(hooked)
    write(hooked / "below" / "left.txt", "left")
    monkeypatch.chdir(hooked / "below")
    done = run("hook", "git", "pre-push")
    assert done.code == 1
    assert "1 file not committed: below/" in done.err


def test_what_git_was_told_not_to_look_at_is_uncommitted_all_the_same(
    hooked: Path, remote: str
) -> None:
    write(hooked / "hidden.txt", "committed")
    commit(hooked, "hidden.txt")
    for flag in ("assume-unchanged", "skip-worktree"):
        git(hooked, "update-index", f"--{flag}", "hidden.txt")
        write(hooked / "hidden.txt", flag)
        refused = tried(hooked, "push", "-q", remote, f"main:{flag}")
        assert "1 file not committed: hidden.txt" in refused.stderr
        git(hooked, "update-index", f"--no-{flag}", "hidden.txt")
        git(hooked, "checkout", "-q", "hidden.txt")
    allowed = ("-c", "protocol.file.allow=always")
    git(hooked, *allowed, "submodule", "add", "-q", str(hooked), "below")
    git(hooked, "commit", "-q", "-m", "Add a submodule")
    write(hooked / "below" / "left.txt", "left")
    assert "1 file not committed: below" in tried(hooked, "push", "-q", remote, "main:x").stderr


def test_a_clean_work_tree_of_the_same_repository_inside_of_this_one_holds_nothing_back(
    hooked: Path, remote: str
) -> None:
    git(hooked, "worktree", "add", "-q", "inside/linked")
    git(hooked, "push", "-q", remote, "main")
    write(hooked / "inside" / "linked" / "left.txt", "left")
    assert "1 file not committed" in tried(hooked, "push", "-q", remote, "main:other").stderr


def test_state_that_cannot_be_read_hides_nothing_of_the_work_tree(
    hooked: Path, remote: str
) -> None:
    assert run("baseline").code == 0
    log = Path(run("where").out.strip()) / "events.jsonl"
    log.write_bytes(b"x" * 10)
    pushed = tried(hooked, "push", "-q", remote, "main")
    assert (pushed.returncode, "the state could not be read" in pushed.stderr) == (0, True)
    write(hooked / "left.txt", "left")
    refused = tried(hooked, "push", "-q", remote, "main:other")
    assert refused.returncode != 0
    assert "1 file not committed: left.txt" in refused.stderr


def test_a_command_to_copy_holds_no_other(hooked: Path, remote: str) -> None:
    branch = "guard/rescue/$(touch${IFS}planted);x"
    git(hooked, "switch", "-qc", branch)
    git(hooked, "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "rescued")
    git(hooked, "switch", "-q", "main")
    said = tried(hooked, "push", "-q", remote, "main").stderr
    assert f"git merge '{branch}', or delete it: git branch -D '{branch}'" in said
