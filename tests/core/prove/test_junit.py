"""JUnit files as runners write them, and as an attacker would."""

import time

import pytest

from guard.core.prove import junit
from guard.core.prove.junit import read_junit
from guard.core.prove.session_report import MOST_TESTS

CASE = '<testcase classname="{}" name="{}"/>'


def states(*reports: str) -> dict[str, tuple[str, str]]:
    read = read_junit([report.encode() for report in reports])
    assert read.problem is None
    return {name: (test.state, test.fault) for name, test in read.tests.items()}


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("", ("passed", "")),
        ("<skipped/>", ("skipped", "")),
        ("<failure/>", ("failed", "assertion")),
        ('<failure type="AssertionError"/>', ("failed", "assertion")),
        ('<failure type="org.junit.ComparisonFailure"/>', ("failed", "assertion")),
        ('<failure type="ValueError"/>', ("failed", "error")),
        ("<error/>", ("failed", "error")),
        ('<error type="ModuleNotFoundError"/>', ("failed", "cannot_run")),
        ("<failure/><skipped/>", ("failed", "assertion")),
        ("<skipped/><error/>", ("failed", "error")),
        (
            "<system-out>x</system-out><properties><property name='failure'/></properties>",
            ("passed", ""),
        ),
        ("<system-out><failure/></system-out>", ("passed", "")),
    ],
)
def test_what_a_testcase_says(inner: str, expected: tuple[str, str]) -> None:
    report = f'<testsuite><testcase classname="a.B" name="c">{inner}</testcase></testsuite>'
    assert states(report) == {"a.B::c": expected}


def test_the_file_comes_from_the_testcase_or_the_suite_around_it() -> None:
    read = read_junit(
        [
            (
                b'<testsuites><testsuite file="t/a.rb"><testsuite><testcase name="x"/></testsuite>'
                b'<testcase name="y" file="t/b.rb"/></testsuite><testcase name="z"/></testsuites>'
            )
        ]
    )
    assert {name: test.file for name, test in read.tests.items()} == {
        "t/a.rb::x": "t/a.rb",
        "t/b.rb::y": "t/b.rb",
        "z": None,
    }


def test_of_two_with_the_same_name_the_failed_one_counts() -> None:
    bad = '<testcase name="a"><failure/></testcase>'
    good, skipped = '<testcase name="a"/>', '<testcase name="a"><skipped/></testcase>'
    for first, second in ((bad, good), (good, bad)):
        assert states(f"<testsuite>{first}{second}</testsuite>")["a"][0] == "failed"
    assert (
        states(f"<testsuite>{skipped}</testsuite>", f"<testsuite>{good}</testsuite>")["a"][0]
        == "passed"
    )


def test_the_last_lines_of_a_failure_are_kept_and_safe() -> None:
    text = "x" * 100_000 + "\nthe end &#x9b;2J"
    read = read_junit(
        [
            f'<testsuite><testcase name="a"><failure message="m">{text}</failure></testcase></testsuite>'.encode()
        ]
    )
    kept = read.tests["a"].text
    assert kept.endswith("the end \\x9b2J")
    assert len(kept) < 10_000


def test_names_are_safe_and_short() -> None:
    read = read_junit(
        [f'<testsuite><testcase name="&#x9b;31m&#x202e;{"n" * 5000}"/></testsuite>'.encode()]
    )
    (name,) = read.tests
    assert name.startswith("\\x9b31m\\u202e")
    assert len(name) < 600


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
BAD = {
    "billion laughs": (
        f'<!DOCTYPE l [<!ENTITY l0 "ha">{LAUGHS}]><testsuite><testcase name="&l11;"/></testsuite>'.encode(),
        "document type",
    ),
    "external entity": (
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite><testcase name="a">&x;</testcase></testsuite>',
        "document type",
    ),
    "external document type": (
        b'<!DOCTYPE a SYSTEM "http://x/y.dtd"><testsuite/>',
        "document type",
    ),
    "unknown entity": (b"<testsuite>&x;</testsuite>", "not XML"),
    "cut off": (b'<testsuite><testcase name="a"/>', "not XML"),
    "empty": (b"", "not XML"),
    "binary": (bytes(range(256)), "not XML"),
    "unknown encoding": (b'<?xml version="1.0" encoding="x-nothing"?><testsuite/>', "decoded"),
    "deep": (b"<testsuite>" * 100_000, "deep"),
    "another document": (b'<html><testcase name="a"/></html>', "not a JUnit report"),
}


@pytest.mark.parametrize(("data", "problem"), BAD.values(), ids=BAD)
def test_what_is_no_report_makes_the_result_incomplete(data: bytes, problem: str) -> None:
    read = read_junit([b'<testsuite><testcase name="fine"/></testsuite>', data])
    assert problem in (read.problem or "")
    assert list(read.tests)[:1] == ["fine"]


def test_a_million_testcases_are_bounded() -> None:
    data = (
        b"<testsuite>"
        + b"".join(b'<testcase name="%d"/>' % n for n in range(1_000_000))
        + b"</testsuite>"
    )
    began = time.process_time()
    read = read_junit([data])
    assert time.process_time() - began < 60
    assert "more than" in (read.problem or "")
    assert len(read.tests) == MOST_TESTS


def test_a_file_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(junit, "MOST_BYTES", 20)
    read = read_junit([b"<testsuite>         </testsuite>"])
    assert "larger than" in (read.problem or "")
