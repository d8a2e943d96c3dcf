"""How the results of several checks become one."""

import pytest

from guard.core.prove.judge_work import ProofJudgement, Result
from guard.core.prove.report import CheckRun, Proof, make_proof
from guard.core.prove.settings import ProveCheck

OID = "a" * 40


def checked(name: str, result: Result | None, reason: str = "green") -> CheckRun:
    said = ProofJudgement(result, reason, "so", flaky=(f"{name}::t",)) if result else None
    return CheckRun(ProveCheck(name=name, command=f"run {name}"), said, OID, OID, {}, 1.0)


def combine(*runs: CheckRun) -> Proof:
    return make_proof(runs, head=OID, head_tree=OID, changed_test_files=(), notes=(), seconds=1)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("proven proven", "proven green"),
        ("proven -", "proven green"),
        ("proven review", "review green"),
        ("review unverifiable", "unverifiable green"),
        ("unverifiable unverifiable:hangs", "unverifiable hangs"),
        ("unverifiable:hangs refuted", "refuted green"),
        ("- -", "unverifiable no_check"),
    ],
)
def test_the_worst_decides(results: str, expected: str) -> None:
    words = [word.partition(":") for word in results.split()]
    found = combine(
        *(
            checked(f"c{number}", None if result == "-" else result, reason or "green")  # type: ignore[arg-type]
            for number, (result, _, reason) in enumerate(words)
        )
    )
    assert f"{found.result} {found.reason}" == expected
    assert [each.result for each in found.checks] == [r if r != "-" else None for r, _, _ in words]


def test_the_check_that_decided_is_named_and_the_tests_of_all() -> None:
    found = combine(checked("one", "proven"), checked("two", "refuted"), checked("three", None))
    assert (found.check, found.command, found.detail) == ("two", "run two", "two: so")
    assert found.flaky == ("two::t", "one::t")
    assert found.checks[2].reason == "not_run"
