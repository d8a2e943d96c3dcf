"""The hook scripts, installed by hand into real repositories."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from guard.hooks.git.pre_commit import check_staged
from tests.support import ROOT, git, path_without_guard, write


@pytest.fixture
def hooked(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the pre-commit script, and guard on PATH."""
    shutil.copy(ROOT / "hooks" / "pre-commit", repository / ".git" / "hooks" / "pre-commit")
    program = write(tmp_path / "bin" / "guard", f'#!/bin/sh\nexec {sys.executable} -m guard "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return repository


def commit(repository: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "commit", "-qm", "x"], cwd=repository, capture_output=True, text=True, check=False
    )


def test_a_wrong_setting_cannot_be_committed(hooked: Path) -> None:
    write(hooked / "guard.toml", "[registry]\nkeep_finished = -1\n")
    git(hooked, "add", "guard.toml")
    refused = commit(hooked)
    assert refused.returncode == 1
    assert "keep_finished" in refused.stderr
    assert "--no-verify" in refused.stderr


def test_what_is_staged_counts_and_not_what_lies_in_the_work_tree(hooked: Path) -> None:
    write(hooked / "guard.toml", "[registry]\nkeep_finished = 1\n")
    git(hooked, "add", "guard.toml")
    write(hooked / "guard.toml", "[registry]\nkeep_finished = -1\n")
    assert commit(hooked).returncode == 0
    git(hooked, "add", "guard.toml")
    write(hooked / "guard.toml", "[registry]\nkeep_finished = 1\n")
    assert commit(hooked).returncode == 1


def test_other_files_are_none_of_its_business(hooked: Path) -> None:
    write(hooked / "a b\n.json", "not JSON")
    git(hooked, "add", "-A")
    assert commit(hooked).returncode == 0


def test_trouble_of_guard_itself_never_blocks_a_commit(hooked: Path, tmp_path: Path) -> None:
    write(hooked / "guard.toml", "[registry]\nkeep_finished = -1\n")
    git(hooked, "add", "-A")
    broken = write(tmp_path / "bin" / "guard", "#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert commit(hooked).returncode == 0


def test_a_missing_guard_never_blocks_a_commit(
    hooked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(hooked / "guard.toml", "[registry]\nkeep_finished = -1\n")
    git(hooked, "add", "-A")
    monkeypatch.setenv("PATH", path_without_guard())
    assert commit(hooked).returncode == 0


def test_a_name_that_looks_like_a_stage_and_a_link_that_became_a_file_are_checked_too(
    hooked: Path,
) -> None:
    write(hooked / "0:state.json", '{"schema": "guard/no-such-kind/1"}')
    git(hooked, "add", "-A")
    assert "0:state.json" in commit(hooked).stderr
    git(hooked, "rm", "-qf", "0:state.json")
    (hooked / "guard.toml").symlink_to("elsewhere")
    git(hooked, "add", "-A")
    git(hooked, "commit", "-q", "--no-verify", "-m", "A link")
    (hooked / "guard.toml").unlink()
    write(hooked / "guard.toml", "[registry]\nkeep_finished = -1\n")
    git(hooked, "add", "-A")
    assert "keep_finished" in commit(hooked).stderr


def test_too_many_files_hide_none_that_is_guards_by_its_name(
    hooked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("guard.hooks.git.pre_commit._MOST_FILES", 2)
    for number in range(3):
        write(hooked / f"{number}.json", "{}")
    write(hooked / "z" / "guard.toml", "[registry]\nkeep_finished = -1\n")
    git(hooked, "add", "-A")
    assert check_staged(os.environ) == 1
    said = capsys.readouterr().err
    assert "keep_finished" in said
    assert "2 of 4 staged JSON files were not checked" in said
