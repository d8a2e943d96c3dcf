"""Several checks, by path and by moment, and the services that they need. The checks are quick ones: their exit codes count."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import git, run, write
from tests.support.sessions import QUICK, script

CODE = {"name": "code", "command": "grep -q good code.txt", "kind": "exit", "paths": ["*.txt"]}
DOCS = {"name": "docs", "command": "grep -q good docs/a.md", "kind": "exit", "paths": ["docs/"]}
LATE = {"name": "late", "command": "test ! -e unfinished", "kind": "exit", "when": "end"}


@pytest.fixture(autouse=True)
def project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(repository / "code.txt", "good\n")
    write(repository / "docs/a.md", "good\n")
    save(repository)
    monkeypatch.setenv("GUARD_PROVE__CHECK", json.dumps([CODE, DOCS, LATE]))
    return repository


def save(project: Path) -> None:
    git(project, "add", "-A")
    git(project, "commit", "-qm", "change")


def prove(*words: str, code: int = 0) -> dict[str, Any]:
    found = run("prove", "--format", "json", *words)
    assert found.code == code, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def results(proof: dict[str, Any]) -> dict[str, str | None]:
    return {check["name"]: check["result"] for check in proof["checks"]}


def test_a_check_runs_if_the_change_touches_its_paths(project: Path) -> None:
    write(project / "code.txt", "good, too\n")
    save(project)
    found = prove()
    assert results(found) == {"code": "proven", "docs": None, "late": "proven"}
    write(project / "docs/a.md", "bad\n")
    save(project)
    found = prove(code=17)
    # The newest proven commit of `code` is HEAD~1, and nothing that it checks has changed since the run began there.
    assert results(found)["docs"] == "refuted"
    assert (found["check"], found["command"]) == ("docs", DOCS["command"])
    assert found["detail"].startswith("docs: the command fails (exit code 1)")
    text = run("prove").out
    assert "  docs: refuted, the command fails (exit code 1)" in text
    assert "--no-cache --check docs" in text
    assert results(prove("--check", "late")) == {"late": "proven"}
    assert "these checks are configured: code, docs, late" in run("prove", "--check", "x").err
    explained = run("prove", "--explain", "--check", "code").out
    assert "check code: grep -q good code.txt" in explained


def test_what_no_check_is_for_is_not_proven(project: Path) -> None:
    write(project / "other", "x\n")
    save(project)
    found = prove("--check", "code", code=1)
    assert (found["result"], found["reason"]) == ("unverifiable", "no_check")


def test_the_checks_for_the_end_of_a_loop_send_it_back_to_work(
    project: Path, tmp_path: Path
) -> None:
    does = f"""
    echo "$1" >> {tmp_path}/heard
    if [ -e unfinished ]; then git rm -q unfinished; else touch unfinished; fi
    sed -i 's/\\[ \\]/[x]/' tasks.md
    git add -A && git commit -qm work
    """
    write(project / "tasks.md", "- [ ] one\n")
    save(project)
    agent = script(tmp_path / "agent", does)
    words = ("--no-probe", "--format", "json", *QUICK, "--max-iterations", "4")
    found = run("loop", *words, "--until-tasks-done", "tasks.md", "--", agent, "Go. {feedback}")
    assert found.code == 0, found.err
    report = json.loads(found.out)
    assert [one["status"] for one in report["iterations"]] == ["complete", "complete"]
    assert results(report["iterations"][0]["proof"]).keys() == {"code", "docs"}
    assert (report["reason"], report["proof"]["result"]) == ("tasks_done", "proven")
    assert "the command fails" in (tmp_path / "heard").read_text()


def test_a_loop_at_its_limit_says_what_the_last_checks_say(project: Path, tmp_path: Path) -> None:
    does = "echo more >> unfinished && git add -A && git commit -qm work"
    agent = script(tmp_path / "agent", does)
    words = ("--no-probe", "--format", "json", *QUICK, "--max-iterations", "1")
    found = run("loop", *words, "--", agent)
    assert found.code == 17, found.err
    report = json.loads(found.out)
    assert (report["reason"], report["exit_code"]) == ("max_iterations", 17)
    assert run("loop", *words, "--no-prove", "--", agent).code == 0


def test_services_are_started_and_stopped_for_each_run(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("GUARD_PROVE__CHECK", "")
    monkeypatch.setenv("GUARD_PROVE__UP", f"echo up >> {log}")
    monkeypatch.setenv("GUARD_PROVE__DOWN", f"echo down >> {log}; test ! -e {tmp_path}/stuck")
    command = f"echo run >> {log}"
    (tmp_path / "stuck").touch()
    found = prove("--command", command)
    assert found["result"] == "proven"
    assert found["notes"] == ["prove.down fails; the services may still run"]
    assert log.read_text().split() == ["up", "run", "down"]
    (tmp_path / "stuck").unlink()
    log.unlink()
    prove("--command", command, "--no-cache")
    # What the last run left is stopped before anything is started.
    assert log.read_text().split() == ["down", "up", "run", "down"]
    monkeypatch.setenv("GUARD_PROVE__UP", "echo no daemon; exit 3")
    found = prove("--command", "true", code=1)
    assert found["reason"] == "cannot_start"
    assert "the services do not start: echo no daemon; exit 3" in found["detail"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('[{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]', "'a' is taken"),
        ('[{"name": "command", "command": "x"}]', "'command' is taken"),
        ('[{"name": "a"}]', "command"),
        ("{", "check"),
    ],
)
def test_wrong_tables_are_refused(monkeypatch: pytest.MonkeyPatch, value: str, said: str) -> None:
    monkeypatch.setenv("GUARD_PROVE__CHECK", value)
    found = run("prove")
    assert (found.code, said in found.err) == (4, True), found.err
