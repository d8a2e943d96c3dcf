"""What work is held against: real runs, branches, merges of others' work, and what a person accepted."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import git, run, write
from tests.support.sessions import QUICK, script

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
TESTS = "import calc\n\n\ndef test_sum():\n    assert calc.add(1, 2) == 3\n"
COMMIT = "git add -A && git commit -qm"
BREAK = f"sed -i s/+/-/ calc.py && {COMMIT} work"
LOOSEN = f"sed -i 's/== 3/!= 9/' tests/test_calc.py && {COMMIT} loosen"


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    write(repository / "conftest.py", "")
    write(repository / "calc.py", "def add(a, b):\n    return a + b\n")
    write(repository / "tests/test_calc.py", TESTS)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "add up")
    return repository


def iterate(folder: Path, does: str, *words: str, command: str = PYTEST) -> dict[str, Any]:
    agent = script(folder / "agent", does)
    given = ("--no-probe", "--format", "json", "--prove", command, *QUICK, *words)
    found = run("run", *given, "--", agent)
    document: dict[str, Any] = json.loads(found.out)
    return document


def prove(*words: str, code: int = 0) -> dict[str, Any]:
    found = run("prove", "--format", "json", "--command", PYTEST, *words)
    assert found.code == code, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def test_nothing_is_laundered_over_two_iterations_until_a_person_accepts_it(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = git(project, "rev-parse", "HEAD").strip()
    does = f"if [ -e {tmp_path}/again ]; then {BREAK}; else touch {tmp_path}/again; {LOOSEN}; fi"
    agent = script(tmp_path / "agent", does)
    words = ("--no-probe", "--format", "json", *QUICK, "--max-iterations", "2", "--prove", PYTEST)
    report = json.loads(run("loop", *words, "--", agent).out)
    one, two = (iteration["proof"] for iteration in report["iterations"])
    assert (one["result"], two["result"]) == ("proven", "review")
    assert (two["baseline"], two["tests_baseline"]) == (one["head"], first)
    assert two["rewritten"] == ["tests/test_calc.py::test_sum"]
    # The next run does not forget it, and an agent cannot accept it.
    assert prove()["tests_baseline"] == first
    monkeypatch.setenv("GUARD_ITERATION", "x")
    monkeypatch.setenv("GUARD_RUN_REPO", str(project))
    assert run("prove", "--accept", "HEAD").code == 2
    monkeypatch.delenv("GUARD_ITERATION")
    monkeypatch.delenv("GUARD_RUN_REPO")
    said = run("prove", "--accept", "HEAD")
    assert said.code == 0
    assert "rewritten: tests/test_calc.py::test_sum" in said.out
    assert prove()["result"] == "proven"
    log = run("log", "--type", "test_changes_accepted", "--format", "json").out
    assert two["head"] in log
    assert run("prove", "--accept", "HEAD", "--no-cache").code == 2


def test_work_on_another_branch_is_proven_at_its_tip(project: Path, tmp_path: Path) -> None:
    does = f"git checkout -qb side && {BREAK} && git checkout -q main"
    found = iterate(tmp_path, does, command="grep -q 'a + b' calc.py")
    assert found["status"] == "refuted"
    tip = git(project, "rev-parse", "side").strip()
    assert (found["proof"]["head"], found["head"] == tip) == (tip, False)


def test_a_rewritten_baseline_is_still_the_baseline(project: Path, tmp_path: Path) -> None:
    amend = "sed -i s/+/-/ calc.py && git add -A && git commit -q --amend -m 'add up'"
    before = git(project, "rev-parse", "HEAD").strip()
    write(project / "more", "x")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "more")
    begun = git(project, "rev-parse", "HEAD").strip()
    found = iterate(tmp_path, amend, command="grep -q 'a + b' calc.py")
    assert found["proof"]["baseline"] == begun != before
    assert found["status"] == "refuted"


def test_what_others_broke_or_rewrote_is_not_the_works_fault(project: Path, tmp_path: Path) -> None:
    remote, clone = tmp_path / "remote", tmp_path / "clone"
    git(project, "clone", "-q", "--bare", str(project), str(remote))
    git(project, "remote", "add", "origin", str(remote))
    git(project, "clone", "-q", str(remote), str(clone))
    write(clone / "tests/test_theirs.py", "def test_theirs():\n    assert False\n")
    write(clone / "calc.py", "def add(a, b):\n    return a + b + 0.5\n")
    write(clone / "tests/test_calc.py", TESTS.replace("== 3", "== 3.5"))
    git(clone, "add", "-A")
    git(clone, "config", "user.name", "Other")
    git(clone, "config", "user.email", "other@example.org")
    git(clone, "commit", "-qm", "theirs")
    git(clone, "push", "-q", "origin", "HEAD")
    does = f"echo words > README && {COMMIT} ours && git pull -q --no-rebase --no-edit origin main"
    found = iterate(tmp_path, does)
    assert found["proof"]["reason"] == "no_new_failures", found["proof"]
    assert found["proof"]["still_failing"] == ["tests/test_theirs.py::test_theirs"]
    assert found["proof"]["rewritten"] == []


def test_a_proof_against_a_baseline_of_ones_choice_settles_nothing(project: Path) -> None:
    command = ("--command", "grep -q 'a + b' calc.py")
    begun = git(project, "rev-parse", "HEAD").strip()
    assert run("baseline").code == 0
    write(project / "calc.py", "bad\n")
    git(project, "commit", "-qam", "break")
    assert run("prove", *command, "--baseline", "HEAD").code == 1
    write(project / "more", "x")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "more")
    found = run("prove", *command, "--format", "json").json
    assert (found["result"], found["baseline"]) == ("refuted", begun)


def test_under_required_a_loop_ends_on_a_proven_commit_only(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "tasks.md", "- [x] one\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "tasks")
    agent = script(tmp_path / "agent", f"echo x >> README; {COMMIT} work")
    proves = ("--until-tasks-done", "tasks.md", "--prove", "grep -q 'a + b' calc.py")
    words = ("--no-probe", "--format", "json", *QUICK, "--max-iterations", "3", *proves)
    assert len(json.loads(run("loop", *words, "--", agent).out)["iterations"]) == 0
    monkeypatch.setenv("GUARD_PROVE__REQUIRED", "true")
    report = json.loads(run("loop", *words, "--", agent).out)
    assert (len(report["iterations"]), report["reason"]) == (1, "tasks_done")
    assert report["iterations"][0]["assurance"] == "proven"
    assert len(json.loads(run("loop", *words, "--", agent).out)["iterations"]) == 0


def test_no_wait_still_proves_but_not_while_the_iteration_lives(
    project: Path, tmp_path: Path
) -> None:
    command = "grep -q 'a + b' calc.py"
    found = iterate(tmp_path, BREAK, "--no-wait", command=command)
    assert (found["status"], found["proof"]["result"]) == ("refuted", "refuted")
