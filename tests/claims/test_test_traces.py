"""Traces of test runs: what the real tools leave, and what is no trace."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from guard.claims import test_traces
from guard.core.claims.evidence import TestRun
from guard.core.claims.test_results import Result, read_jest_cache, read_junit, read_pytest_failures
from tests.support import TIME_LIMIT, write
from tests.support.cost import cpu_limit

PASSING = "def test_it():\n    assert True\n"
FAILING = "def test_it():\n    assert False\n"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """A search that no busy machine cuts short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_traces, "TIME_LIMIT_SECONDS", 120)
        yield


def found(
    project: Path, since: datetime = LONG_AGO, tracked: frozenset[str] = frozenset()
) -> tuple[TestRun, ...] | None:
    now = datetime.now(UTC)
    return test_traces.find_test_runs(project, since, now, tracked, project.parent / "temporary")


def told(project: Path, since: datetime = LONG_AGO) -> set[tuple[str, bool | None]]:
    return {(run.source, run.passed) for run in found(project, since) or ()}


def run_tests(project: Path, text: str, *words: str) -> datetime:
    """Run the real pytest on one file of tests; when it began."""
    write(project / "test_sample.py", text)
    began = datetime.now(UTC)
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "LC_ALL")}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:xdist", *words],
        cwd=project,
        env=environ,
        capture_output=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.returncode in (0, 1, 2, 5), done
    return began


def test_pytest_passing_failing_and_repaired(project: Path) -> None:
    assert found(project) == ()
    first = run_tests(project, PASSING)
    (run,) = found(project, first) or ()
    assert (run.source, run.passed) == ("pytest", True)
    assert first <= run.at <= datetime.now(UTC)
    second = run_tests(project, FAILING)
    assert told(project, second) == {("pytest", False)}
    third = run_tests(project, PASSING)
    assert told(project, third) == {("pytest", True)}
    assert told(project, datetime.now(UTC)) == set()


def test_pytest_that_fails_as_it_did_before_tells_that_it_ran_not_how(project: Path) -> None:
    run_tests(project, FAILING)
    again = run_tests(project, FAILING)
    assert told(project, again) == {("pytest", None)}
    assert told(project) == {("pytest", False)}


def test_pytest_that_cannot_even_read_the_tests(project: Path) -> None:
    began = run_tests(project, "def test_it(:\n")
    assert told(project, began) == {("pytest", False)}


def test_pytest_that_only_lists_is_no_run(project: Path) -> None:
    run_tests(project, PASSING)
    later = run_tests(project, PASSING, "--collect-only")
    assert told(project, later) == set()


def test_pytest_below_the_root(project: Path) -> None:
    package = project / "packages" / "one"
    package.mkdir(parents=True)
    began = run_tests(package, PASSING)
    (run,) = found(project, began) or ()
    assert "packages/one/.pytest_cache" in run.detail


@pytest.mark.parametrize(("text", "passed"), [(PASSING, True), (FAILING, False)])
def test_junit_of_the_real_pytest(project: Path, text: str, passed: bool) -> None:
    began = run_tests(project, text, "-p", "no:cacheprovider", "--junitxml=reports/unit.xml")
    assert told(project, began) == {("junit", passed)}


def test_coverage_of_the_real_tool(project: Path) -> None:
    words = ("-p", "no:cacheprovider", "--cov=.", "--cov-report=xml")
    began = run_tests(project, PASSING, *words)
    (run,) = found(project, began) or ()
    assert (run.source, run.passed) == ("coverage", None)
    assert run.detail == "2 files in ."


@pytest.mark.skipif(not shutil.which("cargo"), reason="cargo is not installed")
def test_cargo_tells_a_test_from_a_build(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(shutil.which("cargo") or "").parent.parent
    monkeypatch.setenv("CARGO_HOME", str(home))
    monkeypatch.setenv("RUSTUP_HOME", str(home.parent / ".rustup"))
    write(project / "Cargo.toml", '[package]\nname = "sample"\nversion = "0.1.0"\n')
    write(project / "src" / "lib.rs", "#[test]\nfn it() {}\n")

    def cargo(*words: str) -> bool:
        done = subprocess.run(
            ["cargo", *words, "--offline", "-q"], cwd=project, capture_output=True, check=False
        )
        return done.returncode == 0

    if not cargo("build"):
        pytest.skip("cargo cannot build here")
    assert cargo("check", "--tests")
    assert told(project) == set()
    write(project / "target" / "debug" / "build" / "dependency" / "junit.xml", "<testsuite/>")
    assert cargo("test")
    (run,) = found(project) or ()
    assert (run.source, run.passed) == ("cargo", None)


def test_jest_in_the_tree_and_in_its_usual_place(project: Path) -> None:
    test = project / "a.test.js"
    kept = write(project / ".jest" / "perf-cache-0e-da", f'{{"{test}":[1,44],"/b.js":[0,9]}}')
    assert told(project) == {("jest", False)}
    kept.unlink()
    digits = {0: "jest_0", 35: "jest_z", 36: "jest_10", 1000: "jest_rs"}
    folder = project.parent / "temporary" / digits.get(os.getuid(), "jest_0")
    write(folder / "perf-cache-1", f'{{"{test}":[1,44],"/elsewhere/b.js":[0,9]}}')
    write(folder / "perf-cache-2", '{"/elsewhere/c.js":[0,9]}')
    expected = {("jest", True)} if os.getuid() in digits else set()
    assert told(project) == expected


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("junit.xml", "junit"),
        ("build/test-results/test/a.xml", "junit"),
        ("target/surefire-reports/TEST-a.b.C.xml", "junit"),
        ("reports/deep/er/x.xml", "junit"),
        ("out/x.xml", None),
        ("node_modules/p/junit.xml", None),
        (".venv/junit.xml", None),
        (".coverage", "coverage"),
        (".coverage.host.123.456", "coverage"),
        (".coveragerc", None),
        ("web/coverage/lcov.info", "coverage"),
    ],
)
def test_names_of_traces(project: Path, name: str, source: str | None) -> None:
    write(project / name, '<testsuite tests="1" failures="0">')
    assert {run.source for run in found(project) or ()} == ({source} if source else set())


def test_times_that_are_no_evidence(project: Path) -> None:
    path = write(project / "junit.xml", '<testsuite tests="1">')
    now = datetime.now(UTC)
    for moment, counts in (
        (now - timedelta(minutes=1), True),
        (now - timedelta(hours=2), False),
        (now + timedelta(hours=1), False),
        (datetime(1969, 1, 1, tzinfo=UTC), False),
    ):
        os.utime(path, (moment.timestamp(),) * 2)
        assert bool(told(project, now - timedelta(hours=1))) == counts
    os.utime(path, (2**40, 2**40))
    assert told(project) == set()


def test_what_git_wrote_is_no_trace(project: Path) -> None:
    write(project / "tests" / "junit.xml", '<testsuite tests="1">')
    assert found(project, tracked=frozenset({"tests/junit.xml"})) == ()
    assert len(found(project) or ()) == 1


def test_many_files_of_one_folder_are_one_run(project: Path) -> None:
    for number in range(30):
        failures = int(number == 7)
        suite = f'<testsuite tests="2" failures="{failures}"/>'
        write(project / "target" / "surefire-reports" / f"TEST-{number}.xml", suite)
    (run,) = found(project) or ()
    assert run.passed is False
    assert run.detail == "30 files in target/surefire-reports, some failed"


def test_odd_files_are_no_trace_and_no_trouble(project: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "junit.xml", '<testsuite tests="1">')
    (project / "junit-link.xml").symlink_to(outside)
    (project / "linked").symlink_to(outside.parent)
    os.mkfifo(project / "junit-pipe.xml")
    (project / "junit-folder.xml").mkdir()
    (project / os.fsdecode(b"caf\xe9")).mkdir()
    write(tmp_path / "cache" / "v" / "cache" / "nodeids", "[]")
    (project / ".pytest_cache").symlink_to(tmp_path / "cache")
    (project / "sub" / ".pytest_cache").mkdir(parents=True)
    (project / "sub" / ".pytest_cache" / "v").symlink_to(tmp_path / "cache" / "v")
    assert found(project) == ()
    write(project / os.fsdecode(b"caf\xe9") / "junit.xml", '<testsuite tests="1">')
    (run,) = found(project) or ()
    assert "caf\\xe9" in run.detail


def test_too_much_to_look_at_is_not_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        write(project / "many" / str(number), "")
    assert found(project) == ()
    monkeypatch.setattr(test_traces, "MOST_ENTRIES", 10)
    assert found(project) is None
    write(project / "junit.xml", '<testsuite tests="1">')
    assert told(project) == {("junit", True)}
    monkeypatch.undo()
    monkeypatch.setattr(test_traces, "_MOST_DEPTH", 0)
    (project / "junit.xml").unlink()
    assert found(project) is None
    monkeypatch.undo()
    monkeypatch.setattr(test_traces, "TIME_LIMIT_SECONDS", -1)
    assert found(project) is None


def test_a_folder_that_is_not_there(project: Path) -> None:
    assert found(project / "nothing") is None


def test_a_large_tree_takes_a_bounded_time(project: Path) -> None:
    for number in range(3000):
        (project / f"d{number % 60}" / f"e{number}").mkdir(parents=True)
    with cpu_limit():
        assert found(project) == ()


@pytest.mark.parametrize(
    ("data", "result"),
    [
        (b'<testsuites><testsuite tests="2" failures="0" errors="0">', Result(True)),
        (b"<testsuite tests='2' failures='1'/>", Result(False, "some failed")),
        (b'<testsuite\n tests="2"\n errors = "3">', Result(False, "some failed")),
        (
            b'<testsuites><testsuite tests="1"/><testsuite failures="1"/>',
            Result(False, "some failed"),
        ),
        (b'<testsuite tests="0">', Result(None, "no tests")),
        (b"<testsuite>", Result(None, "no tests")),
        (b'<testsuite hidden-failures="2" tests="1">', Result(True)),
        (b'<testsuitex tests="1">', None),
        (b"<checkstyle/>", None),
        (b"", None),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>", None),
        (b"<testsuite " * 9999, None),
        (b"<testsuite " + b"x" * 9999 + b">", None),
    ],
)
def test_junit(data: bytes, result: Result | None) -> None:
    assert read_junit(data) == result


def test_junit_that_was_cut_off() -> None:
    inner = b'<testsuites><testsuite tests="2" failures="0">'
    assert read_junit(inner, whole=False) == Result(None, "too long")
    assert read_junit(inner.replace(b"suites>", b"suites tests='2'>"), whole=False) == Result(True)
    assert read_junit(inner + b'<testsuite errors="1">', whole=False) == Result(
        False, "some failed"
    )


@pytest.mark.parametrize(
    ("data", "result"),
    [
        (b"{}", Result(True)),
        (b'{"a": true, "b": true}', Result(False, "2 failures")),
        (b"", Result(None, "unreadable")),
        (b"[]", Result(None, "unreadable")),
        (b"[" * 9999, Result(None, "unreadable")),
    ],
)
def test_what_failed_last(data: bytes, result: Result) -> None:
    assert read_pytest_failures(data) == result


@pytest.mark.parametrize("data", [b"", b"[]", b'{"/p/a": 1}', b'{"/p/a": []}', b'{"/q/a": [1, 2]}'])
def test_what_jest_does_not_write(data: bytes) -> None:
    assert read_jest_cache(data, "/p/") is None
