"""What a calibration suggests, and what a run of all tests says of some of them."""

import pytest

from guard.core.prove.calibration import (
    CalibratedCommit,
    CalibrationCost,
    propose_settings,
)
from guard.core.prove.outcome import CellRun, TestOutcome
from guard.core.prove.settings import ProveSettings

OID = "0d5c9e4ad0410d5c9e4ad0410d5c9e4ad0410d5c"


def replayed(reason: str = "green", result: str = "proven", **fields: object) -> CalibratedCommit:
    given = {
        "commit": OID,
        "parent": OID,
        "subject": "change",
        "result": result,
        "reason": reason,
        "detail": reason,
        "check": "command",
        "new_failures": (),
        "weakened": (),
        "rewritten": (),
        "flaky": (),
        "tail": "",
        "runs": 1,
        "cached": 0,
        "seconds": 2.0,
        "single_run_seconds": 2.0,
    }
    return CalibratedCommit.model_validate({**given, **fields})


def unverifiable(reason: str) -> CalibratedCommit:
    return replayed(reason, "unverifiable")


@pytest.mark.parametrize(
    ("commits", "settings", "longest", "proposed"),
    [
        ([replayed()], {}, 2.0, {"timeout_seconds": "60"}),
        ([replayed()], {}, 20.0, {"timeout_seconds": "210"}),
        ([replayed()], {}, 40.0, {}),
        ([replayed()], {"timeout_seconds": 60.0}, 1.0, {}),
        ([unverifiable("timeout")], {}, 1.0, {"timeout_seconds": "1800"}),
        ([replayed(flaky=("a",))], {}, 40.0, {"reruns": "5"}),
        ([replayed(flaky=("a",))], {"reruns": 5}, 40.0, {}),
        ([replayed()] * 10, {}, 40.0, {"required": "true"}),
        ([replayed()] * 9, {}, 40.0, {}),
        ([replayed()] * 10, {"required": True}, 40.0, {}),
        ([*[replayed()] * 10, unverifiable("flaky")], {}, 40.0, {}),
        ([unverifiable("dependencies_changed")], {}, 40.0, {"setup": '"npm ci"'}),
        ([unverifiable("dependencies_changed")], {"setup": "true"}, 40.0, {}),
        (
            [unverifiable("shared_code")],
            {"share": (".venv",)},
            40.0,
            {"share": "[]", "setup": '"npm ci"'},
        ),
    ],
)
def test_the_proposed_settings_follow_from_what_was_seen(
    commits: list[CalibratedCommit],
    settings: dict[str, object],
    longest: float,
    proposed: dict[str, str],
) -> None:
    cost = CalibrationCost(seconds=1.0, run_seconds=1.0, longest_seconds=longest, ratio=1.0, runs=1)
    found = propose_settings(commits, cost, ProveSettings.model_validate(settings), "npm ci")
    assert {one.key: one.value for one in found} == {
        f"prove.{key}": value for key, value in proposed.items()
    }


def passed(name: str) -> TestOutcome:
    return TestOutcome(name, name.partition("::")[0], "passed")


def ran(*names: str, **fields: object) -> CellRun:
    tests = {name: passed(name) for name in names}
    return CellRun("exited", 0, 1.0, "tests", tests, **fields)  # type: ignore[arg-type]


def test_a_run_of_all_tests_says_what_those_of_some_files_do() -> None:
    found = ran("test_a.py::test", "test_b.py::test").narrow(frozenset({"test_b.py"}))
    assert found is not None
    assert list(found.tests) == ["test_b.py::test"]


@pytest.mark.parametrize(
    "whole",
    [
        ran("test_a.py::test"),
        ran("test_b.py::test", uncollected=("test_c.py",)),
        CellRun("exited", 0, 1.0),
    ],
    ids=["none of the files", "a file that cannot be loaded", "only an exit code"],
)
def test_a_run_of_all_tests_may_say_nothing_of_some_files(whole: CellRun) -> None:
    assert whole.narrow(frozenset({"test_b.py"})) is None
