"""A claim of completion is held against the proof of the committed tree: real commits, real runs of a command."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import git, run, write

CHECK = "grep -q ok state.txt"
CLAIM = "Changed state.txt as asked, committed it, and all tests pass."
REFUTED = "The project's own checks refute the committed work: "
NO_RUN = "Claims a run of tests, and none is recorded"
KEYS = {"confidence", "warnings", "blocking_issues", "evidence_summary", "validated_at"}


@pytest.fixture(autouse=True)
def project(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose check passes, and four agents that have just been spawned."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    change(repository, "ok 0")
    spawn("a1", "a2", "a3", "a4")
    return repository


def spawn(*agents: str) -> None:
    for agent in agents:
        found = run("agent", "spawn", "--task", "T1", "--agent", agent, "--type", "builder")
        assert found.code == 0, found.err


def change(root: Path, text: str) -> None:
    write(root / "state.txt", f"{text}\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", f"Set the state to {text}")


def proves(result: str, command: str = CHECK) -> None:
    found = run("prove", "--command", command, "--format", "json")
    assert found.json["result"] == result, found.out


def judged(agent: str, message: str = CLAIM, **environ: str) -> Any:
    words = ("--task", "T1", "--agent", agent, "--status", "completed", "--message", message)
    found = run("agent", "update", *words, "--format", "json", env=environ)
    assert found.code == 0, found.err
    validation = found.json["completion_validation"]
    assert set(validation) == KEYS
    return validation


def proof_words(validation: Any) -> list[str]:
    said = [*validation["blocking_issues"], *validation["warnings"]]
    return [line for line in said if REFUTED in line]


def test_a_refuted_tree_blocks_until_other_work_is_committed(project: Path) -> None:
    change(project, "red")
    assert not proof_words(judged("a1"))
    proves("refuted")
    (issue,) = judged("a2")["blocking_issues"]
    assert issue.startswith(REFUTED)
    write(project / "state.txt", "ok again\n")
    half = judged("a3")
    assert half["blocking_issues"] == []
    assert half["confidence"] < 0.7
    assert proof_words(half)[0].endswith("changes since then are not committed")
    git(project, "commit", "-q", "-am", "Repair")
    assert not proof_words(judged("a4"))


def test_a_proven_tree_is_a_run_of_tests(project: Path) -> None:
    change(project, "ok 1")
    found = judged("a1")
    assert NO_RUN in found["warnings"]
    assert found["evidence_summary"]["workspace_evidence"]["test_runs_count"] == 0
    proves("proven")
    found = judged("a2")
    assert NO_RUN not in found["warnings"]
    assert found["evidence_summary"]["workspace_evidence"]["test_runs_count"] == 1
    # A proof from before an agent began is not its own, and one of another tree says nothing.
    spawn("a5")
    assert NO_RUN in judged("a5")["warnings"]
    change(project, "ok 2")
    assert NO_RUN in judged("a3")["warnings"]


def test_only_the_users_command_counts_and_an_idle_agent_is_not_to_blame(project: Path) -> None:
    change(project, "red")
    proves("refuted")
    proves("proven", "true")
    named = {"GUARD_PROVE__COMMAND": CHECK}
    assert judged("a1", **named)["blocking_issues"][0].startswith(REFUTED)
    assert judged("a2", GUARD_PROVE__COMMAND="another command")["blocking_issues"] == []
    # The agent that found the work refuted is to blame only if it says that the tests pass.
    spawn("a5", "a6")
    assert not proof_words(judged("a5", "Looked at state.txt and found nothing to do.", **named))
    assert proof_words(judged("a6", **named))
