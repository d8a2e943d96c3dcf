"""`guard snapshot`: what it says, and that the project is as it was."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from guard.core.snapshots.snapshot import Snapshot
from guard.schemas.validate import validator
from tests.rescue.states import start
from tests.support import git, run, write
from tests.support.rescues import contents, fingerprint, recovered
from tests.support.shelves import make_read_only, mounted, refs


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)
    write(repository / "kept.txt", "changed\n")
    write(repository / "new.txt", "new\n")


def taken(workspace: Path, code: int = 0) -> dict[str, Any]:
    result = run("--workspace", workspace, "snapshot", "--format", "json")
    assert result.code == code, (result.out, result.err)
    assert list(validator("snapshot").iter_errors(result.json)) == []
    found: dict[str, Any] = result.json
    return found


def back(found: dict[str, Any], folder: Path) -> Any:
    told = {name: found[name] for name in Snapshot.model_fields}
    return recovered(Snapshot.model_validate({**told, "skipped": tuple(told["skipped"])}), folder)


def test_the_work_tree_is_kept_and_not_touched(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    before = fingerprint(repository / ".git"), contents(repository)
    found = taken(workspace)
    assert (found["schema"], found["whole"], found["skipped"]) == ("guard/snapshot/1", True, [])
    assert found["files"] == len(before[1])
    assert (fingerprint(repository / ".git"), contents(repository)) == before
    assert back(found, tmp_path / "back") == before[1]
    assert refs(workspace) == {found["ref"]}


def test_the_text_says_first_how_to_get_it_back(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    result = run("--workspace", workspace, "snapshot")
    assert (result.code, result.err) == (0, "")
    first, second, third = result.out.splitlines()
    identity = first.removeprefix("guard restore ").removesuffix(" --to DIR")
    assert second == f"  saved: {len(contents(repository))} files in snapshot {identity}"
    assert third.startswith(f"  by git alone: git --git-dir={workspace}/shadow.git archive ")
    words = ("restore", identity, "--to", tmp_path / "back")
    assert run("--workspace", workspace, *words).code == 0
    assert contents(tmp_path / "back") == contents(repository)


def test_what_is_rebuilt_anyway_is_named_and_does_not_count(
    repository: Path, workspace: Path
) -> None:
    write(repository / ".git/info/exclude", "node_modules/\n")
    write(repository / "node_modules/a.js", "x")
    found = taken(workspace)
    assert (found["whole"], found["skipped"]) == (True, ["node_modules: installed packages"])


def test_what_cannot_be_saved_is_named_and_is_exit_code_1(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    os.mkfifo(repository / "pipe")
    for number in range(25):
        os.mkfifo(repository / f"pipe{number}")
    write(repository / "new.txt", "as ever\n")
    found = taken(workspace, code=1)
    assert not found["whole"]
    assert len(found["skipped"]) == 26
    assert back(found, tmp_path / "back") == contents(repository)
    result = run("--workspace", workspace, "snapshot")
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[1].startswith("  saved, but not all of it: ")
    assert lines[3].startswith("  not in it: pipe: ")
    assert lines[-1] == "  and 6 more lines"


def test_files_above_the_limit_are_named(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_RESCUE__SNAPSHOT_MAX_FILE_BYTES", "100")
    write(repository / "large.bin", "x" * 101)
    found = taken(workspace, code=1)
    assert [line.partition(":")[0] for line in found["skipped"]] == ["large.bin"]


def test_without_a_git_directory(repository: Path, tmp_path: Path) -> None:
    assert run("snapshot").code == 0
    shutil.rmtree(repository / ".git")
    result = run("snapshot", "--format", "json")
    assert result.code == 0, result.err
    assert back(result.json, tmp_path / "back") == contents(repository)
    assert not (repository / ".git").exists()


def test_before_the_first_commit(tmp_path: Path, workspace: Path) -> None:
    root = tmp_path / "unborn"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    write(root / "a.txt", "a\n")
    git(root, "add", "a.txt")
    before = fingerprint(root / ".git")
    result = run("--workspace", workspace, "snapshot", "--format", "json", cwd=root)
    assert (result.code, result.json["files"]) == (0, 1)
    assert fingerprint(root / ".git") == before


def test_outside_of_any_work_tree(tmp_path: Path, workspace: Path) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    result = run("--workspace", workspace, "snapshot", cwd=folder)
    assert (result.code, result.out) == (4, "")


@pytest.mark.parametrize("before", [True, False], ids=["with snapshots", "empty"])
def test_a_workspace_that_cannot_be_written(before: bool, repository: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        if before:
            taken(disk / "workspace")
        make_read_only(disk)
        result = run("--workspace", disk / "workspace", "snapshot")
        assert (result.code, result.out) == (6, "")
        assert result.err.startswith("guard: ")


@pytest.mark.parametrize("words", [("now",), ("--to", "x"), ("--format", "yaml")])
def test_wrong_usage(words: tuple[str, ...], workspace: Path) -> None:
    result = run("--workspace", workspace, "snapshot", *words)
    assert (result.code, result.out) == (2, "")
    assert not workspace.exists()
