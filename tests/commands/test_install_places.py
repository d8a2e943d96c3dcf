"""Where the hooks are installed: in one file of a repository, and out of the next agent's commit."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard.install.agents import AGENT_CLIS
from tests.support import commit, git, run, write
from tests.support.planted_links import imprint, outside, plant

LOCAL, SHARED = ".claude/settings.local.json", ".claude/settings.json"


def call(verb: str, *words: str | Path, cwd: Path | None = None) -> Any:
    result = run(verb, *words, "--format", "json", cwd=cwd)
    assert result.code == 0, result.err
    return result.json


def exclude(root: Path) -> str:
    path = root / ".git" / "info" / "exclude"
    return path.read_text() if path.exists() else ""


def status(root: Path) -> str:
    return git(root, "status", "--porcelain", "-uall")


@pytest.mark.parametrize("agent", AGENT_CLIS)
def test_what_is_for_one_user_is_in_no_commit(agent: str, repository: Path) -> None:
    before = exclude(repository)
    done = call("install", agent)
    assert Path(done["paths"][0]).exists()
    assert status(repository) == ""
    assert any("out of commits" in note for note in done["notes"])
    once = exclude(repository)
    call("install", agent)
    assert exclude(repository) == once
    call("uninstall", agent)
    assert (exclude(repository), status(repository)) == (before, "")


@pytest.mark.parametrize("agent", AGENT_CLIS)
def test_what_is_for_everyone_can_be_committed(agent: str, repository: Path) -> None:
    before = exclude(repository)
    call("install", agent)
    done = call("install", agent, "--project")
    assert exclude(repository) == before
    (path,) = {path for path in done["paths"] if Path(path).exists()}
    assert status(repository) == f"?? {Path(path).relative_to(repository)}\n"


def test_a_file_that_git_ignores_or_tracks_needs_no_line(repository: Path) -> None:
    before = exclude(repository)
    write(repository / ".gitignore", "settings.local.json\n")
    assert any("git ignores" in note for note in call("install", "claude")["notes"])
    write(repository / ".gemini" / "settings.json", "{}\n")
    git(repository, "add", ".gemini")
    assert any("git tracks" in note for note in call("install", "gemini")["notes"])
    assert exclude(repository) == before


def test_a_dry_run_writes_no_line(repository: Path) -> None:
    before = exclude(repository)
    call("install", "claude", "--dry-run")
    assert exclude(repository) == before


def test_the_users_own_lines_stay(repository: Path) -> None:
    path = write(repository / ".git" / "info" / "exclude", "mine")
    call("install", "claude")
    assert path.read_text().startswith("mine\n# guard")
    call("uninstall", "claude")
    assert path.read_text() == "mine\n"


@pytest.mark.parametrize("place", ["info", "info/exclude"])
def test_no_line_is_written_outside_of_the_repository(
    place: str, repository: Path, tmp_path: Path
) -> None:
    beside = outside(repository)
    plant(
        repository / ".git",
        place,
        "link to a folder" if place == "info" else "link to a file",
        beside,
    )
    before = imprint(tmp_path / "outside")
    done = call("install", "claude")
    assert done["changed"]
    assert any("is not kept out of commits" in note for note in done["notes"])
    call("uninstall", "claude")
    assert imprint(tmp_path / "outside") == before


def test_linked_work_trees_share_the_line(repository: Path, tmp_path: Path) -> None:
    commit(repository, "First")
    other = tmp_path / "other"
    git(repository, "worktree", "add", "-q", str(other), "-b", "other")
    call("install", "claude", cwd=other)
    call("install", "claude")
    assert status(other) == status(repository) == ""
    call("uninstall", "claude")
    assert status(other) == ""
    call("uninstall", "claude", cwd=other)
    assert LOCAL not in exclude(repository)


def test_hooks_of_an_older_guard_are_moved(repository: Path) -> None:
    mine = '{\n  "model": "opus"\n}\n'
    write(repository / SHARED, mine)
    call("install", "claude", "--project")
    done = call("install", "claude")
    assert (repository / SHARED).read_text() == mine
    assert "Stop" in json.loads((repository / LOCAL).read_text())["hooks"]
    assert any("called twice" in note for note in done["notes"])
    call("install", "claude", "--project")
    assert not (repository / LOCAL).exists()


def test_hooks_that_are_committed_stay_there(repository: Path) -> None:
    call("install", "claude", "--project")
    git(repository, "add", SHARED)
    commit(repository, "Share the hooks")
    done = call("install", "claude")
    assert (done["scope"], done["changed"]) == ("project", False)
    assert any("which git tracks" in note for note in done["notes"])
    assert not (repository / LOCAL).exists()
    assert call("uninstall", "claude")["scope"] == "project"
    assert not (repository / SHARED).exists()


def test_both_files_are_known(repository: Path) -> None:
    call("install", "claude", "--project")
    text = (repository / SHARED).read_text()
    call("install", "claude")
    write(repository / SHARED, text)
    checks = run("doctor", "--format", "json").json["checks"]
    assert [check for check in checks if "in two files" in check["found"]]
    done = call("uninstall", "claude")
    assert sorted(done["paths"]) == [str(repository / SHARED), str(repository / LOCAL)]
    assert not (repository / SHARED).exists()
    assert not (repository / LOCAL).exists()


def test_the_output_is_short(repository: Path) -> None:
    lines = run("install", "claude").out.splitlines()
    assert lines[0].startswith(f"{repository}/{LOCAL}: written (")
    assert len(lines) < 10
    assert "`guard uninstall claude` takes it back; `--diff` shows every line" in lines
    assert '+    "hooks": {' not in lines
    run("uninstall", "claude")
    assert len(run("-v", "install", "claude").out.splitlines()) > 100
