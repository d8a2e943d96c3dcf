"""Odd surroundings: no stdout, a full one, a strange home, somebody else's folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import run, write


def shell(line: str) -> subprocess.CompletedProcess[str]:
    command = line.replace("guard", f"{sys.executable} -m guard", 1)
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)


def test_a_closed_stdout_is_no_bug(repository: Path) -> None:
    assert shell("guard where >&-").returncode == 0


def test_an_answer_that_cannot_be_printed_says_that_the_change_stands(repository: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    done = shell("guard agent spawn --task T1 --agent a1 >/dev/full")
    assert done.returncode == 6
    assert "what the command did stays done" in done.stderr
    assert "1 active" in run("agent", "list").out


def test_a_relative_home_is_refused(repository: Path) -> None:
    result = run("where", env={"HOME": "rel", "XDG_STATE_HOME": ""})
    assert result.code == 4
    assert "HOME" in result.err


def test_a_name_that_is_too_long_is_wrong_usage(tmp_path: Path) -> None:
    assert run("--workspace", tmp_path / ("x" * 300), "agent", "list").code == 2


def test_somebody_elses_folder_is_not_taken(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    write(folder / "letter.txt", "dear")
    folder.chmod(0o700)
    result = run("--workspace", folder, "agent", "spawn", "--task", "T1", "--agent", "a1")
    assert result.code == 2
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]


def test_the_hint_of_a_refused_spawn_works_when_it_is_typed(repository: Path) -> None:
    words = ["agent", "spawn", "--task", "T1", "--agent", "a1"]
    run(*words)
    refused = run(*words)
    assert refused.code == 1
    typed = refused.err.partition("`guard ")[2].partition("`")[0]
    assert run(*typed.split()).code == 0
    assert run(*words).code == 0


def test_a_workspace_inside_the_work_tree_is_warned_of(repository: Path) -> None:
    words = ["agent", "spawn", "--task", "T1", "--agent", "a1"]
    result = run("--workspace", repository / ".guard", *words)
    assert result.code == 0
    assert "lies in the work tree" in result.err
