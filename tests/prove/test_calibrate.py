"""Calibration: the history of a repository, replayed through the proof."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import guard
from tests.support import git, run, write
from tests.support.checkouts import state_of
from tests.support.sessions import started, until

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
ADD = "def add(a, b):\n    return a + b\n"
BROKEN = "def add(a, b):\n    return a - b\n"
TEST = "from calc import add\n\n\ndef test_sum():\n    assert add(1, 2) == 3\n"


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    write(repository / "conftest.py", "")
    write(repository / "tests/test_calc.py", TEST)
    save(repository, "add up", ADD)
    return repository


def save(project: Path, subject: str, code: str, test: str = TEST) -> str:
    write(project / "calc.py", code)
    write(project / "tests/test_calc.py", test)
    git(project, "add", "-A")
    git(project, "commit", "-qm", subject)
    return git(project, "rev-parse", "HEAD").strip()


def calibrate(count: int, *words: str, command: str = PYTEST) -> dict[str, Any]:
    found = run(
        "prove", "--calibrate", str(count), "--format", "json", "--command", command, *words
    )
    assert found.code == 0, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def counted(folder: Path, command: str = "true") -> str:
    """Return a command that also notes each of its runs."""
    return f"echo run >>{folder}/runs; {command}"


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def test_each_commit_is_judged_against_its_first_parent(project: Path) -> None:
    save(project, "green", ADD + "x = 1\n")
    save(project, "rewritten", BROKEN, TEST.replace("== 3", "== -1"))
    broken = save(project, "broken", ADD, TEST.replace("== 3", "== -1"))
    found = calibrate(3)
    assert [(one["subject"], one["result"], one["reason"]) for one in found["commits"]] == [
        ("broken", "refuted", "new_failures"),
        ("rewritten", "review", "tests_rewritten"),
        ("green", "proven", "green"),
    ]
    assert found["head"] == broken
    assert found["ended"] == "complete"
    counts = [found[name] for name in ("proven", "review", "refuted", "unverifiable")]
    assert counts == [1, 1, 1, 0]
    names = ["tests/test_calc.py::test_sum"]
    assert found["commits"][0]["new_failures"] == names
    assert "assert 3 == -1" in found["commits"][0]["tail"]
    assert found["commits"][1]["rewritten"] == names


def test_people_see_counts_names_and_reasons(project: Path) -> None:
    save(project, "broken", BROKEN)
    found = run("prove", "--calibrate", "1", "--command", PYTEST)
    assert found.code == 0
    assert "1 of 1 commit: 0 proven, 0 review, 1 refuted, 0 unverifiable" in found.out
    assert "fails now: tests/test_calc.py::test_sum" in found.out
    assert "commit 1 of 1" in found.err


def test_nothing_of_the_project_changes_and_no_proof_is_recorded(project: Path) -> None:
    save(project, "broken", BROKEN)
    write(project / "calc.py", "uncommitted\n")
    before = state_of(project)
    calibrate(1)
    assert state_of(project) == before
    assert json.loads(run("log", "--format", "json").out)["events"] == []
    # Nor is later work held against what was replayed.
    plan = json.loads(run("prove", "--explain", "--format", "json", "--command", PYTEST).out)
    assert plan["checks"][0]["baseline"] == git(project, "rev-parse", "HEAD~1").strip()


def test_what_a_commit_needs_of_its_parent_is_the_parents_own_run(
    project: Path, tmp_path: Path
) -> None:
    save(project, "green", ADD + "x = 1\n")
    save(project, "broken", BROKEN)
    command = counted(tmp_path, PYTEST)
    found = run(
        *("prove", "--calibrate", "2", "--format", "json", "--command", command),
        env={"GUARD_PROVE__RERUNS": "0"},
    )
    document = json.loads(found.out)
    assert [one["result"] for one in document["commits"]] == ["refuted", "proven"]
    assert runs(tmp_path) == 2
    assert [one["cached"] for one in document["commits"]] == [0, 1]


def test_a_merge_is_one_piece_of_work(project: Path) -> None:
    git(project, "checkout", "-qb", "side")
    save(project, "broken on the side", BROKEN)
    save(project, "repaired on the side", ADD + "x = 1\n")
    git(project, "checkout", "-q", "-")
    git(project, "merge", "-q", "--no-ff", "-m", "merge", "side")
    found = calibrate(1)
    assert [(one["subject"], one["result"]) for one in found["commits"]] == [("merge", "proven")]


def test_a_short_history_ends_it(project: Path) -> None:
    save(project, "green", ADD + "x = 1\n")
    found = calibrate(50, command="true")
    assert found["ended"] == "history"
    assert len(found["commits"]) == int(git(project, "rev-list", "--count", "HEAD")) - 1


def test_the_parent_that_a_shallow_clone_lacks_is_said(project: Path, tmp_path: Path) -> None:
    save(project, "green", ADD + "x = 1\n")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", str(clone))
    found = run(
        "--repo", clone, "prove", "--calibrate", "5", "--format", "json", "--command", "true"
    )
    document = json.loads(found.out)
    assert [one["reason"] for one in document["commits"]] == ["history_missing"]
    assert document["ended"] == "history"


def test_the_time_limit_gives_what_is_done(project: Path) -> None:
    save(project, "green", ADD + "x = 1\n")
    found = calibrate(2, "--max-time", "2", command="sleep 60")
    assert found["ended"] == "max_time"
    assert found["commits"] == []


def test_ctrl_c_gives_what_is_done_and_leaves_nothing(project: Path, tmp_path: Path) -> None:
    slow = save(project, "slow", ADD + "slow = 1\n")
    quick = save(project, "quick", ADD)
    waits = f"if grep -q slow calc.py; then touch {tmp_path}/slow; sleep 987021; fi"
    words = ("prove", "--calibrate", "2", "--format", "json", "--command", waits)
    with started(*words, listen=True) as process:
        until((tmp_path / "slow").exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document["ended"] == "interrupted"
    assert [one["commit"] for one in document["commits"]] == [quick] != [slow]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert "sleep 987021" not in listed.stdout.splitlines()
    cache = Path(os.environ["HOME"]) / ".cache/guard/prove"
    assert list(cache.glob("*/scratch/*")) == []


def test_flaky_tests_are_named_and_more_reruns_proposed(project: Path, tmp_path: Path) -> None:
    save(project, "change", ADD + "x = 1\n")
    flaky = (
        "from pathlib import Path\n\n\ndef test_turns():\n"
        f"    mark = Path({str(tmp_path)!r}) / 'turn'\n"
        "    if mark.exists():\n        return\n    mark.touch()\n    assert False\n"
    )
    write(project / "tests/test_turns.py", flaky)
    save(project, "a flaky test", ADD + "x = 2\n")
    found = calibrate(1)
    assert found["flaky"] == ["tests/test_turns.py::test_turns"]
    assert found["refuted"] == 0
    assert "prove.reruns" in [one["key"] for one in found["proposals"]]


def test_code_of_the_work_tree_is_a_leak(project: Path) -> None:
    (project / "linked").symlink_to(project / "calc.py")
    save(project, "a link into the project", ADD + "x = 1\n")
    found = calibrate(1, command="true")
    assert found["unverifiable"] == 1
    assert len(found["leaks"]) == 1
    assert "linked" in found["leaks"][0]


@pytest.mark.parametrize(
    "words",
    [
        ("--calibrate", "0"),
        ("--calibrate", "1", "--baseline", "HEAD~1"),
        ("--calibrate", "1", "--accept", "HEAD"),
        ("--calibrate", "1", "--explain"),
        ("--max-time", "5"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_together_is_refused(words: tuple[str, ...]) -> None:
    assert run("prove", "--command", "true", *words).code == 2


def test_python_gets_the_same(project: Path) -> None:
    save(project, "green", ADD + "x = 1\n")
    found = guard.calibrate(1, command="true", repo=project)
    assert (found.proven, found.ended) == (1, "complete")
