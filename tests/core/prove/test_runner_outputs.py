"""What guard reads from the output and the reports of cargo, go, jest and vitest, recorded from real runs."""

import json

import pytest

from guard.core.prove.cargo_output import CargoOutput
from guard.core.prove.go_output import GoOutput
from guard.core.prove.javascript_report import read_javascript_reports
from guard.core.prove.outcome import TestOutcome
from guard.core.prove.session_report import RunnerReport

CARGO = """\
   Compiling calc v0.1.0 (/home/user/calc)
    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.69s
     Running unittests src/lib.rs (target/debug/deps/calc-c6626fb655a8d231)

running 5 tests
test tests::broken ... FAILED
test tests::bad ... FAILED
test tests::ok ... ok
test tests::slow ... ignored, too slow
test tests::panics - should panic ... ok

failures:

---- tests::broken stdout ----

thread 'tests::broken' (6841) panicked at src/lib.rs:13:19:
oh
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- tests::bad stdout ----

thread 'tests::bad' (6840) panicked at src/lib.rs:11:16:
assertion `left == right` failed
  left: 3
 right: 4


failures:
    tests::bad
    tests::broken

test result: FAILED. 2 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.19s

error: test failed, to rerun pass `--lib`
     Running tests/it.rs (target/debug/deps/it-b462ec70d69dbcd3)

running 1 test
test whole ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests calc

running 1 test
test src/lib.rs - add (line 2) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.14s
"""


def hear_cargo(text: str) -> RunnerReport | None:
    output = CargoOutput()
    for line in text.splitlines():
        output.hear(line.encode())
    return output.report()


def kinds(tests: dict[str, TestOutcome]) -> dict[str, str]:
    return {name: test.fault or test.state for name, test in tests.items()}


def test_cargo_names_each_test() -> None:
    report = hear_cargo(CARGO)
    assert report is not None
    assert kinds(report.tests) == {
        "src/lib.rs::tests::broken": "error",
        "src/lib.rs::tests::bad": "assertion",
        "src/lib.rs::tests::ok": "passed",
        "src/lib.rs::tests::slow": "skipped",
        "src/lib.rs::tests::panics": "passed",
        "tests/it.rs::whole": "passed",
        "Doc-tests calc::src/lib.rs - add": "passed",
    }
    assert report.problem is None
    assert "left: 3" in report.tests["src/lib.rs::tests::bad"].text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (CARGO.partition("   Doc-tests")[0] + "   Doc-tests calc\n\nrunning 1 test\n", True),
        (CARGO.replace("test result: ok. 1 passed", "", 1), True),
        # The tests' own output stands inside of the lines: nothing is known of single tests.
        (CARGO.replace("test whole ... ok", "test whole ... hello\nok"), False),
        ("error[E0425]: cannot find function `gone`\nerror: could not compile `calc`\n", False),
    ],
    ids=["cut off", "a target without its end", "--nocapture", "not compiled"],
)
def test_cargo_output_that_is_not_whole_is_no_green_report(text: str, problem: bool) -> None:
    report = hear_cargo(text)
    assert (report is not None and report.problem is not None) == problem
    assert report is None or problem


GO_EVENTS = [
    ("run", "TestOk", ""),
    ("output", "TestOk", "=== RUN   TestOk\n"),
    ("pass", "TestOk", ""),
    ("run", "TestBad", ""),
    ("output", "TestBad", "    calc_test.go:6: it is 2\n"),
    ("fail", "TestBad", ""),
    ("run", "TestPanic", ""),
    ("output", "TestPanic", "panic: oh [recovered]\n"),
    ("output", None, "FAIL\texample.com/calc\t0.002s\n"),
    ("fail", None, ""),
]


def hear_go(*lines: str) -> RunnerReport:
    output = GoOutput("example.com/calc")
    for line in lines:
        output.hear(line.encode())
    report = output.report()
    assert report is not None
    return report


def go_line(action: str, test: str | None, output: str, package: str = "example.com/calc") -> str:
    event = {"Action": action, "Package": package, "Output": output}
    return json.dumps(event if test is None else {**event, "Test": test})


def test_go_names_each_test_and_a_panic_fails_the_one_that_ran() -> None:
    report = hear_go(*(go_line(*event) for event in GO_EVENTS))
    assert kinds(report.tests) == {
        ".::TestOk": "passed",
        ".::TestBad": "assertion",
        ".::TestPanic": "error",
    }
    assert (report.uncollected, report.problem) == ((), None)


@pytest.mark.parametrize(
    ("lines", "uncollected", "problem"),
    [
        (["FAIL\texample.com/calc/sub [build failed]"], ("sub",), False),
        ([go_line("fail", None, "", "example.com/calc/sub")], ("sub",), False),
        ([go_line("output", None, "ok\tcalc\n"), go_line("pass", None, "")], (), True),
        ([go_line("output", None, "PASS\n"), go_line("pass", None, "")], (), False),
        (
            [go_line("output", None, "?\tx\t[no test files]\n"), go_line("pass", None, "")],
            (),
            False,
        ),
        ([go_line("run", "TestA", "")], (), True),
    ],
    ids=["not built", "failed", "exits early", "without tests", "without test files", "cut off"],
)
def test_go_packages_that_ran_no_test(
    lines: list[str], uncollected: tuple[str, ...], problem: bool
) -> None:
    report = hear_go(*lines)
    assert (report.uncollected, report.problem is not None) == (uncollected, problem)


def case(title: str, status: str, message: str = "", *above: str) -> dict[str, object]:
    messages = [message] if message else []
    return {
        "ancestorTitles": above,
        "title": title,
        "status": status,
        "failureMessages": messages,
    }


JEST = {
    "success": False,
    "wasInterrupted": False,
    "testResults": [
        {
            "name": "/w/a.test.js",
            "status": "failed",
            "message": "",
            "assertionResults": [
                case("ok", "passed"),
                case(
                    "wrong",
                    "failed",
                    "Error: \x1b[2mexpect(\x1b[22mreceived).toBe(expected)\n    at Object.toBe (/w/a.test.js:2:61)",
                ),
                case(
                    "gone",
                    "failed",
                    "TypeError: app.nowhere is not a function\n    at Object.nowhere (/w/a.test.js:2:94)",
                ),
                case(
                    "broken",
                    "failed",
                    "TypeError: x.nowhere is not a function\n    at broken (/w/app.js:1:5)\n    at Object.x (/w/a.test.js:2:9)",
                ),
                case("plain", "failed", "assert.strictEqual(received, expected)\n\nExpected"),
                case(
                    "vitest", "failed", "AssertionError: expected 1 to be 2\n    at /w/a.test.js:2"
                ),
                case("left out", "pending"),
                case("later", "todo"),
                case("inside", "passed", "", "suite", "deep"),
            ],
        },
        {"name": "/w/b.test.js", "status": "failed", "message": "x", "assertionResults": []},
    ],
}


def test_jest_and_vitest_name_each_test() -> None:
    report = read_javascript_reports([json.dumps(JEST).encode()], "/w")
    assert kinds(report.tests) == {
        "a.test.js::ok": "passed",
        "a.test.js::wrong": "assertion",
        "a.test.js::gone": "cannot_run",
        "a.test.js::broken": "error",
        "a.test.js::plain": "assertion",
        "a.test.js::vitest": "assertion",
        "a.test.js::left out": "skipped",
        "a.test.js::later": "skipped",
        "a.test.js::suite > deep > inside": "passed",
    }
    assert (report.uncollected, report.problem) == (("b.test.js",), None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"testResults": [1]}',
        b'{"testResults": [{"name": "a", "status": "passed", "assertionResults": 7}]}',
        b'{"testResults": [], "wasInterrupted": true}',
    ],
)
def test_a_report_of_another_shape_is_not_whole(data: bytes) -> None:
    assert read_javascript_reports([data], "/w").problem
