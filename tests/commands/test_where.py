"""`guard where`: which workspace is a repository's own, whatever became of its `.git`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.support import ROOT, commit, git, run, write


def where(cwd: Path | None = None, *words: str, env: dict[str, str] | None = None) -> Any:
    result = run(*words, "where", "--format", "json", cwd=cwd, env=env)
    assert result.code == 0, result.err
    assert list(validator("where").iter_errors(result.json)) == []
    return result.json


def begin(cwd: Path) -> None:
    """Have guard write something, so that it remembers the work tree."""
    result = run("agent", "spawn", "--task", "T1", "--agent", "a1", cwd=cwd)
    assert result.code == 0, result.err


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Test Author")
    git(folder, "config", "user.email", "author@example.com")
    return folder


def test_by_default_it_lies_in_the_state_home(repository: Path, home: Path) -> None:
    found = where()
    assert Path(found["workspace"]).parent == home / "state" / "guard"
    assert Path(found["workspace"]).name.startswith("project-")
    assert (found["origin"], found["exists"]) == ("default", False)
    assert found["worktree"] == str(repository)
    assert found["git_dir"] == found["common_dir"] == str(repository / ".git")
    assert run("where").out == found["workspace"] + "\n"
    assert not (home / "state").exists()


def test_a_subfolder_and_a_link_lead_to_the_same_place(repository: Path, tmp_path: Path) -> None:
    (repository / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(repository)
    assert where(repository / "a" / "b") == where(tmp_path / "link") == where()


def test_what_decides_from_weakest_to_strongest(
    repository: Path, home: Path, tmp_path: Path
) -> None:
    by_default = where(env={"XDG_STATE_HOME": str(tmp_path / "elsewhere")})
    assert by_default["workspace"].startswith(str(tmp_path / "elsewhere" / "guard"))
    begin(repository)
    assert (where()["origin"], where()["exists"]) == ("index", True)
    config = write(home / "config/guard/config.toml", f'workspace = "{tmp_path}/user"\n')
    assert (where()["workspace"], where()["origin"]) == (f"{tmp_path}/user", str(config))
    variable = {"GUARD_WORKSPACE": f"{tmp_path}/variable"}
    found = where(env=variable)
    assert (found["workspace"], found["origin"]) == (f"{tmp_path}/variable", "GUARD_WORKSPACE")
    found = where(None, "--workspace", f"{tmp_path}/flag", env=variable)
    assert (found["workspace"], found["origin"]) == (f"{tmp_path}/flag", "--workspace")


@pytest.mark.parametrize(
    "env",
    [{"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}],
    ids=["an empty XDG_STATE_HOME", "a relative XDG_STATE_HOME"],
)
def test_a_state_home_that_says_nothing_is_the_one_in_home(
    env: dict[str, str], repository: Path, home: Path
) -> None:
    assert Path(where(env=env)["workspace"]).parent == home / ".local" / "state" / "guard"


def test_an_empty_variable_is_as_none(repository: Path) -> None:
    assert where(env={"GUARD_WORKSPACE": ""}) == where()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            "/proc/nowhere/at/all",
            "cannot create the workspace /proc/nowhere/at/all: /proc/nowhere/at does not exist",
        ),
        ("postgresql://[host/db", "no address of a PostgreSQL server"),
    ],
)
def test_a_workspace_that_cannot_be_is_wrong_usage(told: str, said: str, repository: Path) -> None:
    result = run("--workspace", told, "where")
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def test_linked_work_trees_share_the_workspace_and_have_keys_of_their_own(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    main, linked = where(repository), where(tmp_path / "linked")
    assert linked["workspace"] == main["workspace"]
    assert linked["common_dir"] == main["common_dir"]
    assert linked["worktree_key"] != main["worktree_key"]
    assert linked["git_dir"] == str(repository / ".git" / "worktrees" / "linked")


def test_a_submodule_is_a_repository_of_its_own(repository: Path, tmp_path: Path) -> None:
    commit(made(tmp_path / "library"))
    allowed = ("-c", "protocol.file.allow=always")
    git(repository, *allowed, "submodule", "add", "-q", str(tmp_path / "library"), "sub")
    found = where(repository / "sub")
    assert found["git_dir"] == found["common_dir"] == str(repository / ".git" / "modules" / "sub")
    assert found["workspace"] != where(repository)["workspace"]


@pytest.mark.parametrize("how", ["a pointer", "a link"])
def test_a_git_directory_that_leads_elsewhere_is_not_followed(
    how: str, repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    assert run("baseline").code == 0
    before = where(repository)
    git(tmp_path, "init", "-q", "other")
    (repository / ".git").rename(tmp_path / "mine.git")
    if how == "a link":
        (repository / ".git").symlink_to(tmp_path / "other/.git")
    else:
        write(repository / ".git", f"gitdir: {tmp_path}/other/.git\n")
    write(repository / "work.txt", "work\n")
    assert where(repository) == {**before, "git_dir_exists": False}
    found = run("rescue", "--format", "json")
    assert (found.code, found.json["reason"]) == (1, "not_plain:git")
    assert found.json["snapshot"]["files"] == 2


def test_a_vanished_git_directory_still_finds_its_workspace(repository: Path) -> None:
    inner = made(repository / "inner")
    (inner / "deep").mkdir()
    begin(inner)
    before = where(inner)
    shutil.rmtree(inner / ".git")
    for folder in (inner, inner / "deep"):
        found = where(folder)
        assert found == {**before, "git_dir_exists": False}
        assert found["workspace"] != where(repository)["workspace"]
    result = run("where", cwd=inner)
    assert result.err.startswith(f"guard: warning: {inner}/.git is gone")


def test_a_linked_work_tree_outlives_the_main_git_directory(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    begin(tmp_path / "linked")
    before = where(tmp_path / "linked")
    shutil.rmtree(repository / ".git")
    assert where(tmp_path / "linked") == {**before, "git_dir_exists": False}


def test_another_folder_at_the_same_place_is_not_mistaken_for_it(repository: Path) -> None:
    inner = made(repository / "inner")
    begin(inner)
    inner.rename(repository / "moved")
    inner.mkdir()
    assert where(inner)["worktree"] == str(repository)


def test_a_repository_that_was_made_anew_keeps_its_workspace(repository: Path) -> None:
    begin(repository)
    before = where()
    shutil.rmtree(repository / ".git")
    git(repository, "init", "-q")
    assert where() == before


def test_a_bare_repository_has_no_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")
    for folder in (tmp_path / "bare", tmp_path / "bare" / "refs"):
        result = run("where", cwd=folder)
        assert (result.code, result.out) == (4, "")
        assert "has no work tree: it is a bare repository, or a git directory" in result.err


@pytest.mark.parametrize("words", [[], ["--repo", "."]], ids=["by the folder", "by --repo"])
def test_no_repository_is_exit_4(words: list[str], tmp_path: Path) -> None:
    result = run(*words, "where", cwd=tmp_path)
    assert (result.code, result.out) == (4, "")
    first, hint = result.err.splitlines()
    assert first == f"guard: {tmp_path} is not in a git repository"
    assert hint.startswith("hint: change to a repository")


def test_a_named_workspace_needs_no_repository(tmp_path: Path) -> None:
    found = where(tmp_path, "--workspace", str(tmp_path / "w"))
    assert (found["worktree"], found["git_dir"], found["common_dir"]) == (None, None, None)


@pytest.mark.parametrize(
    "text", ["", "rubbish\n", "gitdir: \n"], ids=["empty", "rubbish", "no path"]
)
def test_a_git_file_that_names_nothing_is_exit_4(text: str, repository: Path) -> None:
    (repository / "inner").mkdir()
    write(repository / "inner" / ".git", text)
    result = run("where", cwd=repository / "inner")
    assert (result.code, result.out) == (4, "")
    assert "is a file that does not name a git directory" in result.err


def test_a_git_file_that_points_nowhere_is_not_a_git_directory_that_exists(
    repository: Path,
) -> None:
    """Either answer is honest: an error, or a repository whose git directory is gone; never the one around it."""
    inner = repository / "inner"
    inner.mkdir()
    write(inner / ".git", "gitdir: /proc/nowhere/at/all\n")
    result = run("where", "--format", "json", cwd=inner)
    if result.code != 4:
        assert result.json["worktree"] == str(inner)
        assert result.json["git_dir_exists"] is False


def test_a_path_with_a_newline(tmp_path: Path) -> None:
    folder = made(tmp_path / "new\nline")
    commit(folder)
    git(folder, "worktree", "add", "-q", str(tmp_path / "linked"))
    begin(folder)
    found = where(folder)
    assert found["worktree"] == str(folder)
    assert Path(found["workspace"]).name.startswith("new-line-")
    assert len(run("where", cwd=folder).out.splitlines()) == 1
    assert where(tmp_path / "linked")["workspace"] == found["workspace"]


def test_a_path_that_is_no_text(tmp_path: Path) -> None:
    folder = made(Path(os.fsdecode(os.fsencode(tmp_path) + b"/p\xff\xfe")))
    found = where(folder)
    assert found["worktree"].startswith(f"{tmp_path}/p\\")
    assert found["worktree"].isascii()
    begin(folder)
    assert where(folder) == {**found, "origin": "index", "exists": True}
    shutil.rmtree(folder / ".git")
    assert where(folder)["git_dir_exists"] is False


def test_a_damaged_entry_of_the_index_is_told_with_the_way_out(
    repository: Path, home: Path
) -> None:
    begin(repository)
    (entry,) = (home / "state" / "guard" / "index.d").iterdir()
    entry.write_text("{}")
    result = run("where")
    assert (result.code, result.out) == (5, "")
    assert f"guard: {entry} is damaged" in result.err
    entry.unlink()
    assert where()["origin"] == "default"


def test_a_relative_workspace_in_the_users_file_is_refused(repository: Path, home: Path) -> None:
    write(home / "config" / "guard" / "config.toml", 'workspace = "state"\n')
    result = run("where")
    assert result.code == 4
    assert "'state' is a relative path" in result.err


def test_a_current_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "{sys.executable}" -m guard where'
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=environ)
    assert done.returncode == 4
    assert "no longer exists" in done.stderr
