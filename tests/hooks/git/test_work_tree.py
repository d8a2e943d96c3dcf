"""A git hook asks no git that an agent planted in one of the work trees, wherever a link to it lies."""

import os
from pathlib import Path

import pytest

from guard.hooks.git.work_tree import ask_git
from tests.support import commit, git
from tests.support.sessions import script


@pytest.mark.parametrize("place", ["main", "linked", "other", "main/.git", "main/sub"])
@pytest.mark.parametrize("here", ["main", "main/sub", "linked"])
def test_a_hook_asks_no_git_of_any_work_tree(
    here: str, place: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "sub/first.txt")
    (tmp_path / "main").symlink_to(repository)
    for name in ("linked", "other"):
        git(repository, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
    mark, outside = tmp_path / "mark", tmp_path / "outside"
    planted = script(tmp_path / place / "tools/git", f"echo ran > {mark}")
    outside.mkdir()
    (outside / "git").symlink_to(planted)
    monkeypatch.chdir(tmp_path / here)
    environ = {**os.environ, "PATH": f"{outside}{os.pathsep}{os.environ['PATH']}"}
    assert ask_git(environ, "rev-parse", "--is-inside-work-tree") == b"true\n"
    assert not mark.exists()


def test_a_folder_that_only_claims_to_be_a_work_tree_is_searched(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository, "first.txt")
    tools, entry = tmp_path / "tools", repository / ".git/worktrees/claimed"
    script(tools / "git", "echo of the user")
    entry.mkdir(parents=True)
    (entry / "gitdir").write_text(f"{tools}/.git\n")
    assert ask_git({"PATH": str(tools)}, "version") == b"of the user\n"
