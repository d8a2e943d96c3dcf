"""What the cells prove, and which of them are asked for."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from guard.core.prove.file_roles import FileChanges
from guard.core.prove.judge_work import Need, ProofJudgement, Terms, judge_work
from guard.core.prove.outcome import CellRun, Fault, State, TestOutcome

A, B = "tests/test_a.py", "tests/test_b.py"
TERMS = Terms(reruns=2)
CODE = FileChanges(code=("calc.py",))
CHANGED = FileChanges(code=("calc.py",), changed_modules=(A,))
ADDED = FileChanges(code=("calc.py",), new_modules=(B,))


def cell(
    passed: str = "", failed: str = "", skipped: str = "", *, fault: Fault = "assertion"
) -> CellRun:
    """A run of tests, each named by a letter; capital letters are in the other file."""
    tests = {}
    for names, state in ((passed, "passed"), (failed, "failed"), (skipped, "skipped")):
        for letter in names:
            file = B if letter.isupper() else A
            name = f"{file}::test_{letter}"
            kind: Fault = fault if state == "failed" else ""
            tests[name] = TestOutcome(name, file, state, kind, "it said why")  # type: ignore[arg-type]
    code = 1 if failed else 0 if tests else 5
    return CellRun("exited", code, 1.0, "tests", tests)


def by_exit(code: int) -> CellRun:
    return CellRun("exited", code, 1.0)


HANGS = CellRun("timeout", None, 900.0)


def drive(
    change: FileChanges, runs: Mapping[str, CellRun | list[CellRun]], terms: Terms = TERMS
) -> tuple[ProofJudgement, list[str]]:
    """Answer each need from the table; a list has the first run and the ones after it."""
    steps = judge_work(change, terms)
    asked: list[str] = []
    need: Need = next(steps)
    while True:
        asked.append(need.cell + (f"+{need.attempt}" if need.attempt else ""))
        found = runs[need.cell]
        run = found if isinstance(found, CellRun) else found[min(need.attempt, len(found) - 1)]
        if need.files is not None:
            run = replace(run, tests={n: t for n, t in run.tests.items() if t.file in need.files})
        try:
            need = steps.send(run)
        except StopIteration as end:
            return end.value, asked


def short(names: tuple[str, ...]) -> str:
    return "".join(name.rpartition("_")[2] for name in names)


CASES: dict[str, tuple[FileChanges, dict[str, CellRun | list[CellRun]], str, str]] = {
    "green, no test changed": (CODE, {"after": cell("ab")}, "proven green", "after"),
    "green by exit code": (CODE, {"after": by_exit(0)}, "proven green", "after"),
    "red in what was red": (
        CODE,
        {"after": cell("a", "b"), "before": cell("a", "b")},
        "proven no_new_failures",
        "after before",
    ),
    "red in what was green": (
        CODE,
        {"after": cell("a", "b"), "before": cell("ab")},
        "refuted new_failures",
        "after before after+1 before+1 after+2 before+2",
    ),
    "a new test that fails": (
        ADDED,
        {"after": cell("a", "B"), "before": cell("a")},
        "refuted new_failures",
        "after before after+1 after+2",
    ),
    "red once": (
        CODE,
        {"after": [cell("a", "b"), cell("ab")], "before": cell("ab")},
        "unverifiable flaky",
        "after before after+1",
    ),
    "red on the baseline, too, the second time": (
        CODE,
        {"after": cell("a", "b"), "before": [cell("ab"), cell("a", "b")]},
        "unverifiable flaky",
        "after before after+1 before+1",
    ),
    "red by exit code alone": (
        CODE,
        {"after": by_exit(2), "before": by_exit(0)},
        "refuted new_failures",
        "after before after+1 after+2",
    ),
    "red by exit code before and after": (
        CODE,
        {"after": by_exit(2), "before": by_exit(2)},
        "unverifiable red_before",
        "after before",
    ),
    "red by exit code once": (
        CODE,
        {"after": [by_exit(1), by_exit(0)], "before": by_exit(0)},
        "unverifiable flaky",
        "after before after+1",
    ),
    "an exit code that no test explains": (
        CODE,
        {"after": replace(cell("ab"), exit_code=2), "before": cell("ab")},
        "refuted new_failures",
        "after before after+1 after+2",
    ),
    "the same exit code before, and all tests pass": (
        CODE,
        {"after": replace(cell("ab"), exit_code=2), "before": replace(cell("ab"), exit_code=2)},
        "proven no_new_failures",
        "after before",
    ),
    "many red before": (
        CODE,
        {"after": cell("abc", "defg"), "before": cell("abc", "def")},
        "unverifiable red_before",
        "after before",
    ),
    "nothing is collected": (
        CODE,
        {"after": cell(), "before": cell("a")},
        "refuted does_not_start",
        "after before",
    ),
    "nothing is collected, nor was before": (
        CODE,
        {"after": cell(), "before": cell()},
        "unverifiable cannot_start",
        "after before",
    ),
    "nothing is collected after dependencies changed": (
        replace(CODE, dependency_files=("uv.lock",)),
        {"after": cell(), "before": cell("a")},
        "unverifiable dependencies_changed",
        "after before",
    ),
    "a report that says nothing, with exit code 0": (
        CODE,
        {"after": CellRun("exited", 0, 1.0, "tests"), "before": cell("a")},
        "refuted does_not_start",
        "after before",
    ),
    "a hang": (CODE, {"after": HANGS, "before": cell("a")}, "unverifiable hangs", "after before"),
    "a hang that was there before": (
        CODE,
        {"after": HANGS, "before": HANGS},
        "unverifiable timeout",
        "after before",
    ),
    "a runner that lies": (
        CODE,
        {"after": replace(cell("a"), tampered="a failing test was reported as passed")},
        "refuted runner_tampered",
        "after",
    ),
    "code of the work tree": (
        CODE,
        {"after": replace(cell("a"), foreign_code=("/project/calc.py",))},
        "unverifiable shared_code",
        "after",
    ),
    "a full disk": (
        CODE,
        {"after": CellRun("disk_full", None, 3.0)},
        "unverifiable disk_full",
        "after",
    ),
    "a test is removed, and its old version fails": (
        CHANGED,
        {"after": cell("a"), "old_tests": cell("a", "b"), "before": cell("ab")},
        "refuted tests_weakened",
        "after old_tests before old_tests+1 old_tests+2",
    ),
    "a test is skipped, and its old version fails": (
        CHANGED,
        {"after": cell("a", "", "b"), "old_tests": cell("a", "b"), "before": cell("ab")},
        "refuted tests_weakened",
        "after old_tests before old_tests+1 old_tests+2",
    ),
    "a test that failed before is removed": (
        CHANGED,
        {"after": cell("a"), "old_tests": cell("a", "b"), "before": cell("a", "b")},
        "refuted tests_weakened",
        "after old_tests before old_tests+1 old_tests+2",
    ),
    "a test is rewritten, and its old version fails": (
        CHANGED,
        {"after": cell("ab"), "old_tests": cell("a", "b"), "before": cell("ab")},
        "review tests_rewritten",
        "after old_tests before old_tests+1 old_tests+2",
    ),
    "a removed test could not run any more": (
        CHANGED,
        {
            "after": cell("a"),
            "old_tests": cell("a", "b", fault="cannot_run"),
            "before": cell("ab"),
        },
        "review tests_rewritten",
        "after old_tests before old_tests+1 old_tests+2",
    ),
    "a test is rewritten, and its old version passes": (
        CHANGED,
        {"after": cell("ab"), "old_tests": cell("ab")},
        "proven green",
        "after old_tests",
    ),
    "a removed test that still passes": (
        CHANGED,
        {"after": cell("a"), "old_tests": cell("ab")},
        "proven green",
        "after old_tests",
    ),
    "an old test that fails now and then": (
        CHANGED,
        {"after": cell("a"), "old_tests": [cell("a", "b"), cell("ab")], "before": cell("ab")},
        "proven green",
        "after old_tests before old_tests+1",
    ),
    "old tests that cannot be loaded": (
        CHANGED,
        {
            "after": cell("ab"),
            "old_tests": replace(cell(), uncollected=(A,), exit_code=2),
            "before": cell("ab"),
        },
        "review tests_rewritten",
        "after old_tests before",
    ),
    "old tests that cannot be run at all": (
        replace(CODE, steering=("conftest.py",)),
        {"after": cell("ab"), "old_tests": cell(), "before": cell("ab")},
        "review tests_rewritten",
        "after old_tests before",
    ),
    "the first tests of a project": (
        replace(ADDED, steering=("conftest.py",)),
        {"after": cell("B"), "old_tests": cell(), "before": cell(), "old_code": cell("", "B")},
        "proven green",
        "after old_tests before old_code",
    ),
    "changed tests by exit code, green as they were": (
        CHANGED,
        {"after": by_exit(0), "old_tests": by_exit(0)},
        "proven green",
        "after old_tests",
    ),
    "changed tests by exit code, red as they were": (
        CHANGED,
        {"after": by_exit(0), "old_tests": by_exit(1), "before": by_exit(0)},
        "review tests_rewritten",
        "after old_tests before",
    ),
    "an old failure whose test moved to another file": (
        CHANGED,
        {
            "after": CellRun(
                "exited",
                1,
                1.0,
                "tests",
                {"x.py::test_b": TestOutcome("x.py::test_b", "x.py", "failed")},
            ),
            "before": CellRun(
                "exited",
                1,
                1.0,
                "tests",
                {"x.py::test_b": TestOutcome("x.py::test_b", "x.py", "failed")},
            ),
            "old_tests": cell("a"),
        },
        "proven no_new_failures",
        "after before old_tests",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_result_and_the_runs_that_it_took(name: str) -> None:
    change, runs, expected, cells = CASES[name]
    judgement, asked = drive(change, runs)
    assert (f"{judgement.result} {judgement.reason}", " ".join(asked)) == (expected, cells), (
        judgement
    )


def test_the_names_are_told() -> None:
    judgement, _ = drive(
        CHANGED,
        {"after": cell("a", "", "cd"), "old_tests": cell("abc", "d"), "before": cell("abcd")},
    )
    assert (short(judgement.weakened), short(judgement.vanished)) == ("d", "b")
    assert (short(judgement.newly_skipped), judgement.reason) == ("c", "tests_weakened")
    assert "test_d\nit said why" in judgement.tail


def test_what_was_mended_on_the_way_is_told() -> None:
    judgement, _ = drive(CODE, {"after": cell("ab", "c"), "before": cell("a", "bc")})
    assert (short(judgement.fixed), short(judgement.still_failing)) == ("b", "c")


def test_new_tests_that_pass_without_the_change_are_noted() -> None:
    runs = {"after": cell("aBC"), "old_code": cell("B", "C")}
    judgement, asked = drive(ADDED, runs)
    assert (judgement.result, short(judgement.vacuous), asked) == (
        "proven",
        "B",
        ["after", "old_code"],
    )


def test_a_linter_is_held_against_no_old_tests() -> None:
    judgement, asked = drive(CHANGED, {"after": by_exit(0)}, replace(TERMS, are_tests=False))
    assert (judgement.result, asked) == ("proven", ["after"])


def test_without_reruns_a_difference_counts_at_once() -> None:
    runs = {"after": cell("a", "b"), "before": cell("ab")}
    judgement, asked = drive(CODE, runs, replace(TERMS, reruns=0))
    assert (judgement.reason, asked) == ("new_failures", ["after", "before"])


def test_tests_that_the_code_skips_need_a_person() -> None:
    runs = {"after": cell("b", skipped="a"), "before": cell("ab")}
    judgement, asked = drive(CODE, runs)
    assert (judgement.result, judgement.reason) == ("review", "tests_rewritten")
    assert short(judgement.newly_skipped) == "a"
    assert asked == ["after", "before"]


def test_tests_that_were_skipped_before_are_no_news() -> None:
    judgement, _ = drive(CODE, {"after": cell("b", skipped="a"), "before": cell("b", skipped="a")})
    assert judgement.result == "proven"


@pytest.mark.parametrize(
    ("after", "before", "result", "cells"),
    [
        ("a", "aB", "review tests_rewritten", "after before"),
        ("a", "a", "proven green", "after before"),
        ("aB", "", "proven green", "after"),
    ],
    ids=["no longer run", "never run", "still run"],
)
def test_unchanged_tests_that_are_not_run_any_more_need_a_person(
    after: str, before: str, result: str, cells: str
) -> None:
    runs = {"after": cell(after), "before": cell(before)}
    judgement, asked = drive(replace(CODE, shadowed=(A, B)), runs)
    assert f"{judgement.result} {judgement.reason}" == result
    assert " ".join(asked) == cells
    assert short(judgement.vanished) == ("B" if "review" in result else "")


@pytest.mark.parametrize("code", [0, 1])
def test_reports_that_are_incomplete_on_both_sides_prove_and_refute_nothing(code: int) -> None:
    cut = replace(cell("ab"), exit_code=code, is_whole=False, detail="there are too many tests")
    judgement, _ = drive(CODE, {"after": cut, "before": cut})
    assert (judgement.result, judgement.reason) == ("unverifiable", "red_before")
    assert judgement.detail.startswith("there are too many tests")


def test_a_report_that_cannot_be_read_is_named_in_the_result() -> None:
    said = "the JUnit report names more than 200000 tests"
    broken = replace(cell("ab"), is_whole=False, detail=said)
    judgement, _ = drive(CODE, {"after": broken, "before": cell("ab")})
    assert (judgement.result, judgement.detail) == (
        "refuted",
        f"{said}; on the baseline it succeeds",
    )
    empty = replace(broken, tests={})
    judgement, _ = drive(CODE, {"after": empty, "before": cell("ab")})
    assert judgement.reason == "does_not_start"
    assert f"(exit code 0; {said})" in judgement.detail


def test_a_stub_that_makes_a_suite_load_needs_a_person() -> None:
    stub = FileChanges(code=("calc.py",), other_tests=("tests/calc/__init__.py",))
    broken = replace(cell(), uncollected=(A,), exit_code=2)
    runs = {"after": cell("ab"), "old_tests": broken, "before": broken}
    judgement, _ = drive(stub, runs)
    assert (judgement.result, judgement.reason) == ("review", "tests_rewritten")
    # A test file that could not be loaded, and was mended itself, is another matter.
    judgement, _ = drive(CHANGED, runs)
    assert judgement.result == "proven"


def test_code_that_a_run_writes_needs_a_person_unless_the_baseline_writes_it_too() -> None:
    writes = replace(cell("ab"), written=("calc.py",))
    judgement, asked = drive(CODE, {"after": writes, "before": cell("ab")})
    assert (judgement.result, judgement.reason) == ("review", "doubtful_change")
    assert asked == ["after", "before"]
    judgement, _ = drive(CODE, {"after": writes, "before": writes})
    assert judgement.result == "proven"
    judgement, asked = drive(CODE, {"after": writes}, replace(TERMS, are_tests=False))
    assert (judgement.result, asked) == ("proven", ["after"])


def test_a_doubt_about_the_code_needs_a_person() -> None:
    judgement, asked = drive(replace(CODE, doubts=("calc.py asks",)), {"after": cell("ab")})
    assert (judgement.result, judgement.reason) == ("review", "doubtful_change")
    assert (judgement.detail, asked) == ("calc.py asks", ["after"])


@pytest.mark.parametrize(("before", "result"), [(None, "review"), ("calc.py", "proven")])
def test_a_runner_that_the_code_has_changed_needs_a_person(before: str | None, result: str) -> None:
    runs = {
        "after": replace(cell("ab"), patched="calc.py"),
        "before": replace(cell("ab"), patched=before),
    }
    assert drive(CODE, runs)[0].result == result


@pytest.mark.parametrize(
    ("state", "result"), [("failed", "proven"), ("passed", "review"), ("skipped", "refuted")]
)
def test_a_failing_test_that_moves_to_another_file_is_the_same_test(
    state: State, result: str
) -> None:
    name = f"{B}::test_a"
    moved = TestOutcome(name, B, state, "assertion" if state == "failed" else "")
    after = cell("b")
    after = replace(after, tests={**after.tests, name: moved}, exit_code=int(state == "failed"))
    change = replace(CHANGED, new_modules=(B,))
    old = cell("b", "a")
    runs = {"after": after, "before": cell("b", "a"), "old_tests": old, "old_code": cell("b")}
    assert drive(change, runs)[0].result == result
