"""Complete work is held against the project's own checks: real agents, commits, checkouts and runs of pytest."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from guard import check, prove
from tests.support import git, run, write
from tests.support.sessions import QUICK, answering, script

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
ADD = "def add(a, b):\n    return a + b\n"
TESTS = "import calc\n\n\ndef test_sum():\n    assert calc.add(1, 2) == 3\n"
COMMIT = "git add -A && git commit -qm"
BREAK = f"sed -i s/+/-/ calc.py && {COMMIT} 'all tests pass'"
REPAIR = f"sed -i s/-/+/ calc.py && {COMMIT} repair"
DOCUMENT = f"echo words >> README && {COMMIT} document"
SLOW = "import time\n\n\ndef test_slow():\n    time.sleep(600)\n"


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    write(repository / "conftest.py", "")
    write(repository / "calc.py", ADD)
    write(repository / "tests/test_calc.py", TESTS)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "add up")
    return repository


def iterate(
    folder: Path, does: str, *words: str, command: str = PYTEST, code: int = 0
) -> dict[str, Any]:
    agent = script(folder / "agent", does)
    found = run(
        *("run", "--no-probe", "--format", "json", "--prove", command, *QUICK, *words),
        *("--", agent),
    )
    assert found.code == code, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def said(report: dict[str, Any]) -> tuple[str, str, str | None]:
    return report["status"], report["reason"], report["assurance"]


def test_proven_work_is_complete(tmp_path: Path) -> None:
    found = iterate(tmp_path, DOCUMENT)
    assert said(found) == ("complete", "commits", "proven")
    assert found["proof"]["reason"] == "green"
    assert found["proof"]["head"] == found["head"]
    assert "proven: green" in " ".join(fact["fact"] for fact in found["evidence"])


def test_work_that_breaks_a_test_is_refuted_and_keeps_its_commits(
    project: Path, tmp_path: Path
) -> None:
    found = iterate(tmp_path, BREAK, code=17)
    assert said(found) == ("refuted", "new_failures", None)
    assert not found["complete"]
    assert found["proof"]["new_failures"] == ["tests/test_calc.py::test_sum"]
    assert found["new_commits"] == 1
    assert git(project, "log", "-1", "--format=%s").strip() == "all tests pass"


def test_a_removed_test_refutes_what_it_would_have_caught(tmp_path: Path) -> None:
    remove = f"rm tests/test_calc.py && echo 'def test_x(): pass' > tests/test_x.py && {BREAK}"
    assert said(iterate(tmp_path, remove, code=17))[:2] == ("refuted", "tests_weakened")


def test_what_one_iteration_broke_refutes_the_next_one_too(tmp_path: Path) -> None:
    iterate(tmp_path, BREAK, code=17)
    found = iterate(tmp_path, DOCUMENT, code=17)
    assert said(found)[:2] == ("refuted", "new_failures")
    assert said(iterate(tmp_path, REPAIR)) == ("complete", "commits", "proven")


def test_nothing_to_do_after_refuted_work_stays_refuted(tmp_path: Path) -> None:
    iterate(tmp_path, BREAK, code=17)
    says = answering(tmp_path, "complete")
    agent = script(tmp_path / "agent", "true")
    words = ("--format", "json", "--prove", PYTEST, "--probe-command", says, *QUICK)
    found = run("run", *words, "--", agent)
    assert found.code == 17, found.err
    assert json.loads(found.out)["status"] == "refuted"


def test_rescued_work_is_proven_too(tmp_path: Path) -> None:
    says, agent = (
        answering(tmp_path, "complete"),
        script(tmp_path / "agent", "sed -i s/+/-/ calc.py"),
    )
    words = ("--format", "json", "--prove", PYTEST, "--probe-command", says, *QUICK)
    found = run("run", *words, "--", agent)
    assert found.code == 17, found.err
    report = json.loads(found.out)
    assert (report["status"], report["rescued"]) == ("refuted", True)


def test_without_a_command_or_with_no_prove_complete_work_is_unproven(tmp_path: Path) -> None:
    assert said(iterate(tmp_path, BREAK, "--no-prove")) == ("complete", "commits", "unproven")
    found = iterate(tmp_path, DOCUMENT, command="")
    assert said(found) == ("complete", "commits", "unproven")
    assert found["proof"] is None


def test_a_command_that_does_not_exist_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iterate(tmp_path, DOCUMENT, command="no-such-command")
    assert said(found) == ("complete", "commits", "unproven")
    assert found["proof"]["result"] == "unverifiable"
    monkeypatch.setenv("GUARD_PROVE__REQUIRED", "true")
    found = iterate(tmp_path, DOCUMENT, command="no-such-command", code=15)
    assert said(found) == ("error", "unverifiable", None)


def test_work_that_makes_the_checks_hang_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PROVE__TIMEOUT_SECONDS", "20")
    write(tmp_path / "slow.py", SLOW)
    hang = f"cp {tmp_path}/slow.py tests/test_slow.py && {COMMIT} tests"
    assert said(iterate(tmp_path, hang, code=15))[:2] == ("error", "unverifiable")


def test_a_verdict_is_replayed_with_its_proof(tmp_path: Path) -> None:
    iterate(tmp_path, BREAK, code=17)
    found = json.loads(run("judge", "--replay", "1", "--format", "json").out)
    assert (found["status"], found["recorded_status"]) == ("refuted", "refuted")


def test_refuted_work_opens_the_breaker_with_a_reason_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_BREAKER__REFUTED_LIMIT", "2")
    iterate(tmp_path, BREAK, code=17)
    found = iterate(tmp_path, DOCUMENT, code=17)
    assert (found["breaker"]["state"], found["breaker"]["reason"]) == ("open", "refuted")
    assert found["breaker"]["streak"] == 0
    iterate_again = run("run", "--no-probe", "--", "true")
    assert iterate_again.code == 20


def test_a_check_from_python_proves(project: Path) -> None:
    assert run("baseline").code == 0
    write(project / "calc.py", ADD.replace("+", "-"))
    git(project, "commit", "-qam", "all tests pass")
    report = check(probe=False, wait=False, settings={"prove.command": PYTEST})
    assert (report.status, report.proof and report.proof.result) == ("refuted", "refuted")
    assert prove(command=PYTEST).new_failures == ("tests/test_calc.py::test_sum",)


def test_a_loop_tells_the_next_agent_what_failed_and_ends_on_proven_work(
    project: Path, tmp_path: Path
) -> None:
    write(project / "tasks.md", "- [ ] one\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "tasks")
    prompt = write(tmp_path / "prompt", "Do the tasks.\n")
    does = f"""
    cat > {tmp_path}/heard.$$
    mv {tmp_path}/heard.$$ {tmp_path}/heard.$(ls {tmp_path} | grep -c heard)
    if grep -q 'test_sum' {tmp_path}/heard.*; then
        {REPAIR}
    else
        sed -i 's/\\[ \\]/[x]/' tasks.md
        {BREAK}
    fi
    """
    agent = script(tmp_path / "agent", does)
    found = run(
        *("loop", "--no-probe", "--format", "json", "--prove", PYTEST, "--max-iterations", "4"),
        *("--until-tasks-done", "tasks.md", "--prompt-file", prompt, *QUICK, "--", agent),
    )
    assert found.code == 0, found.err
    report = json.loads(found.out)
    assert [one["status"] for one in report["iterations"]] == ["refuted", "complete"]
    assert report["reason"] == "tasks_done"
    heard = sorted(tmp_path.glob("heard.*"))
    assert heard[0].read_text() == "Do the tasks.\n"
    assert "tests/test_calc.py::test_sum" in heard[1].read_text()
    assert heard[1].read_text().startswith("Do the tasks.\n")


def test_the_feedback_stands_where_the_words_ask_for_it(project: Path, tmp_path: Path) -> None:
    agent = script(tmp_path / "agent", f'echo "$1" >> {tmp_path}/heard\n{BREAK}')
    run(
        *("loop", "--no-probe", "--prove", PYTEST, "--max-iterations", "2", *QUICK),
        *("--", agent, "Go on. {feedback}"),
    )
    text = (tmp_path / "heard").read_text()
    assert text.startswith("Go on. \nGo on. The committed work does not pass")
    assert "{feedback}" not in text
