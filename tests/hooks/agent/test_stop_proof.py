"""A session wants to stop at a commit that a recorded proof refutes; the hook itself proves nothing."""

from pathlib import Path
from typing import Any

import pytest

from guard.context.invocation import Invocation
from guard.core.prove.summary import ProofResult
from tests.support import commit, git, run, write
from tests.support.hooks import STOPS, decisions, faults, start, stop
from tests.support.metrics import proof_made


@pytest.fixture
def project(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def record(project: Path, result: ProofResult = "refuted", **fields: Any) -> None:
    """Record a proof of HEAD, as a command would."""
    guard = Invocation()
    head, tree = (git(project, "rev-parse", f"HEAD{end}").strip() for end in ("", "^{tree}"))
    made = {"worktree": guard.worktree_key, "head": head, "tree": tree, "run": None, **fields}
    with guard.writable_store.change() as change:
        change.append(proof_made(result, failures=("tests/test_a.py::test_one",), **made))


@pytest.mark.parametrize("agent", sorted(STOPS))
def test_refuted_work_blocks_twice_and_not_once_head_has_moved(project: Path, agent: str) -> None:
    start(agent)
    commit(project, "broken.txt")
    record(project)
    head = git(project, "rev-parse", "HEAD")[:12]
    answers = [stop(agent, stop_hook_active=bool(number)) for number in range(4)]
    assert ["decision" in one for one in answers] == [True, True, False, False]
    assert f"the project's own checks refute commit {head}: 1 test fails" in answers[0]["reason"]
    assert "- tests/test_a.py::test_one" in answers[0]["reason"]
    if agent != "copilot":
        assert f"refute commit {head}" in answers[2]["systemMessage"]
    git(project, "commit", "-q", "--allow-empty", "-m", "Move on")
    assert stop(agent, stop_hook_active=True) == {}
    assert decisions() == [
        ("blocked", "refuted", 1),
        ("blocked", "refuted", 2),
        *[("released", "cap", 2)] * 2,
        ("released", "clean", 2),
    ]
    assert faults() == ""


def test_uncommitted_work_comes_first_and_the_count_is_one(project: Path) -> None:
    start()
    commit(project, "broken.txt")
    record(project)
    write(project / "left.txt", "by the agent\n")
    assert "refute" not in stop()["reason"]
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "Add what was left")
    record(project)
    assert "refute" in stop(stop_hook_active=True)["reason"]
    assert "decision" not in stop(stop_hook_active=True)
    assert [one[1:] for one in decisions()] == [("uncommitted", 1), ("refuted", 2), ("cap", 2)]


@pytest.mark.parametrize("newest", ["proven", "review", "unverifiable"])
def test_the_newest_proof_of_the_commit_counts(project: Path, newest: ProofResult) -> None:
    start()
    commit(project, "made.txt")
    record(project)
    record(project, newest)
    assert stop() == {}


def test_work_that_was_refuted_before_the_session_does_not_hold_it(project: Path) -> None:
    commit(project, "broken.txt")
    record(project)
    start()
    assert stop() == {}


def test_a_proof_by_another_command_counts_only_if_a_check_made_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    commit(project, "made.txt")
    record(project)
    monkeypatch.setenv("GUARD_PROVE__COMMAND", "the user's own command")
    assert stop() == {}
    record(project, run="r1")
    assert "refute" in stop()["reason"]


def test_no_block_is_no_block(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    commit(project, "made.txt")
    record(project)
    monkeypatch.setenv("GUARD_HOOKS__MAX_BLOCKS", "0")
    assert stop() == {}


def test_a_proof_that_a_command_made_is_given_and_none_is_made(project: Path) -> None:
    write(project / "state.txt", "ok\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "Begin")
    start()
    write(project / "state.txt", "red\n")
    git(project, "commit", "-q", "-am", "All tests pass")
    assert stop() == {}
    assert run("prove", "--command", "grep -q ok state.txt").code == 17
    proofs = [entry.event.type for entry in Invocation().store.entries()].count("proof_made")
    assert "refute commit" in stop()["reason"]
    after = [entry.event.type for entry in Invocation().store.entries()].count("proof_made")
    assert (proofs, after) == (1, 1)
