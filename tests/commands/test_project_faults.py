"""A fault in a file that the agent can write stops no command: it is a warning, or a snapshot is taken before the refusal."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import commit, git, run, write

COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "snapshot": (("snapshot",), 0),
    "baseline": (("baseline",), 0),
    "run": (("run", "--no-probe", "--no-wait", "--", "true"), 10),
    "loop": (("loop", "--max-iterations", "2", "--no-probe", "--no-wait", "--", "true"), 10),
    "status": (("status",), 0),
    "breaker record": (("breaker", "record", "--status", "timeout"), 0),
    "breaker allow": (("breaker", "allow"), 0),
    "rescue": (("rescue",), 0),
    "check": (("check", "--no-probe", "--no-wait", "--no-rescue"), 10),
    "agent spawn": (("agent", "spawn", "--task", "T1", "--agent", "a1"), 0),
}


@pytest.mark.parametrize(("words", "code"), COMMANDS.values(), ids=COMMANDS)
def test_an_unknown_key_is_said_once_and_stops_no_command(
    words: tuple[str, ...], code: int, repository: Path
) -> None:
    commit(repository)
    if words[0] in ("rescue", "check"):
        assert run("baseline").code == 0
    write(repository / "left.txt", "left\n")
    write(repository / "guard.toml", "[registry]\nkeep = 1\n")
    result = run(*words)
    assert result.code == code, result.err
    said = f"{repository / 'guard.toml'}: unknown key 'registry.keep'; did you mean 'registry.keep_finished'?"
    # An open iteration goes by the settings of its baseline, which had no such key.
    assert result.err.count(said) == (0 if words[0] in ("rescue", "check") else 1)


def test_a_file_that_breaks_while_the_agent_works_does_not_stop_its_rescue(
    repository: Path,
) -> None:
    commit(repository)
    agent = "echo left > left.txt; mkdir guard.toml; echo '[tool.guard' > pyproject.toml"
    result = run("run", "--no-probe", "--no-wait", "--format", "json", "--", "sh", "-c", agent)
    assert result.code == 10, result.err
    assert result.json["snapshot"]["whole"]
    assert run("rescue", "--format", "json").json["commits"]


def test_the_warnings_stand_in_the_report_of_a_baseline(repository: Path) -> None:
    commit(repository)
    write(repository / "guard.toml", "colour = 1\n")
    (warning,) = run("baseline", "--format", "json").json["warnings"]
    assert "unknown key 'colour'" in warning


GIT_FAULTS: dict[str, Callable[[Path], object]] = {
    "a boolean that is none": lambda root: git(root, "config", "core.bare", "maybe"),
    "a format of the future": lambda root: git(root, "config", "core.repositoryformatversion", "9"),
    "half a config": lambda root: write(root / ".git/config", "[core"),
    "an empty HEAD": lambda root: write(root / ".git/HEAD", ""),
    "an index of rubbish": lambda root: write(root / ".git/index", "rubbish"),
}


@pytest.mark.parametrize("damage", GIT_FAULTS.values(), ids=GIT_FAULTS)
def test_a_baseline_that_git_refuses_keeps_the_work_tree_first(
    damage: Callable[[Path], object], repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    write(repository / "left.txt", "left\n")
    damage(repository)
    result = run("baseline")
    assert result.code == 4, result.err
    assert "the work tree is saved: guard restore " in result.err
    assert run("restore", "latest", "--to", tmp_path / "back").code == 0
    assert (tmp_path / "back" / "left.txt").read_text() == "left\n"
    assert os.path.lexists(repository / "left.txt")


NO_GIT = {
    "gone": "true",
    "garbage": "echo x > .git",
    "empty": ": > .git",
    "a pipe": "mkfifo .git",
    "a link to nothing": "ln -s nothing .git",
    "a link to itself": "ln -s .git .git",
    "an empty folder": "mkdir .git",
    "a file that leads nowhere": "echo 'gitdir: /nonexistent' > .git",
}


@pytest.mark.parametrize("way", NO_GIT.values(), ids=NO_GIT)
def test_work_is_saved_and_brought_back_whatever_stands_in_the_place_of_git(
    way: str, repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    assert run("baseline").code == 0
    write(repository / "left.txt", "left\n")
    subprocess.run(["sh", "-c", f"rm -rf .git; {way}"], check=True, cwd=repository)
    check = run("check", "--no-probe", "--no-wait")
    assert check.code == 4
    assert "the work tree is saved: guard restore" in check.err
    assert not run("rescue", "--format", "json").json["commits"]
    taken = run("snapshot", "--format", "json")
    assert run("restore", taken.json["id"], "--to", tmp_path / "back").code == 0
    assert (tmp_path / "back/left.txt").read_text() == "left\n"
    assert run("status").code == 0
