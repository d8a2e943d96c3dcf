"""`guard metrics`: the figures of a real log as text, JSON and Prometheus' format."""

from pathlib import Path
from typing import Any

import pytest

from guard.schemas.validate import validator
from guard.store.file_store import FileStore
from tests.support import run
from tests.support.events import run_started
from tests.support.metrics import begun, checked, ended, families, opened, proof_made, rescued


@pytest.fixture(autouse=True)
def chosen(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace in the environment."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))


@pytest.fixture
def four_iterations(store: FileStore) -> None:
    """Work, a rescue that failed, and two stalls of which the second opened the breaker while a helper was at work."""
    with store.change() as change:
        change.append(run_started())
        for number in range(1, 5):
            change.append(begun(number))
        change.append(checked(1, commits=1), ended(1))
        change.append(rescued(0), checked(2, probes=3, cost=0.25), ended(2, "error"))
        change.append(checked(3, probes=5), ended(3, "timeout"))
        change.append(proof_made("proven"), proof_made("refuted"), proof_made("refuted"))
        change.append(checked(4, probes=0, alive=1), ended(4, "timeout"), opened(4))


def report() -> Any:
    result = run("metrics", "--format", "json")
    assert (result.code, result.err) == (0, "")
    assert list(validator("metrics").iter_errors(result.json)) == []
    return result.json


@pytest.mark.usefixtures("four_iterations")
def test_the_figures_with_their_targets_for_people() -> None:
    result = run("metrics")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "false aborts          100.0 %  1 of 1 abort                      target: below 5 %, missed\n"
        "successful rescues      0.0 %  0 of 1 rescue\n"
        "probes per iteration      2.0  8 probes in 4 iterations          target: at most 2, met\n"
        "stalls                 50.0 %  2 of 4 iterations\n"
        "1 run, 4 iterations: 1 complete, 2 stalled, 1 error\n"
        "8 probes, cost $0.25; 0 commits by rescues\n"
        "3 proofs: 1 proven, 2 refuted\n"
        "breaker: 1 opening (no_commits 1), 0 trials, 1 open now\n"
        "used: unknown\n"
    )


@pytest.mark.usefixtures("four_iterations")
def test_the_same_figures_for_scripts() -> None:
    found = report()
    assert (found["false_abort_rate"], found["rescue_success_rate"]) == (1.0, 0.0)
    assert (found["average_probes_per_iteration"], found["timeout_rate"]) == (2.0, 0.5)
    assert (found["aborts"], found["false_aborts"], found["probe_cost_usd"]) == (1, 1, 0.25)
    assert found["iterations_by_status"]["timeout"] == 2
    assert found["proofs"] == {"proven": 1, "refuted": 2, "review": 0, "unverifiable": 0}
    assert [(target["target"], target["met"]) for target in found["targets"]] == [
        ("below 5 %", False),
        ("at most 2", True),
    ]


@pytest.mark.usefixtures("four_iterations")
def test_the_same_figures_for_prometheus() -> None:
    result = run("metrics", "--format", "prometheus")
    assert (result.code, result.err) == (0, "")
    found = families(result.out)
    assert found["guard_false_abort_ratio"] == ("gauge", {"": "1.0"})
    assert found["guard_iterations_ended_total"][1]['{status="timeout"}'] == "2"


def test_without_a_log_rates_are_not_available_and_nothing_is_written(workspace: Path) -> None:
    found = report()
    assert [found[name] for name in ("false_abort_rate", "timeout_rate")] == [None, None]
    assert run("metrics").out.startswith("false aborts              n/a  0 of 0 aborts")
    assert "guard_timeout_ratio NaN" in run("metrics", "--format", "prometheus").out
    assert not workspace.exists()


def test_a_real_breaker_is_counted() -> None:
    for _ in range(3):
        assert run("breaker", "record", "--status", "timeout").code == 0
    assert run("breaker", "trip", "--reason", "lunch").code == 0
    found = report()
    assert (found["aborts"], found["false_aborts"], found["open_breakers"]) == (1, 0, 1)
    assert found["breaker_openings"] == {"lunch": 1, "no_commits": 1}


def test_a_log_that_is_damaged_is_an_error_and_no_figure(workspace: Path) -> None:
    for _ in range(3):
        run("breaker", "record", "--status", "timeout")
    log = workspace / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"timeout"', b'"limited"', 1))
    result = run("metrics")
    assert (result.code, result.out) == (5, "")


def test_another_format_is_wrong_usage() -> None:
    assert run("metrics", "--format", "xml").code == 2
