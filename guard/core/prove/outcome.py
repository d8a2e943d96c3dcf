"""What one run of a check showed: how it ended, and what each test did."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from posixpath import dirname
from typing import Literal

State = Literal["passed", "failed", "skipped"]
Fault = Literal["assertion", "error", "cannot_run", ""]
"""Why a test failed: what it asserts is not so; its own code or the tested code raised; it could not be run at all."""
End = Literal["exited", "timeout", "disk_full", "cannot_start"]
Granularity = Literal["tests", "exit"]
CellName = Literal["before", "after", "old_tests", "old_code"]


@dataclass(frozen=True)
class TestOutcome:
    """What one test did. Its id begins with its file where the runner tells it: `tests/test_a.py::test_b`."""

    # pytest would take the class for tests.
    __test__ = False

    id: str
    file: str | None
    state: State
    fault: Fault = ""
    text: str = ""
    """The last lines of what it said when it failed, or why it was skipped."""


@dataclass(frozen=True)
class CellRun:
    """One run of the command on one tree."""

    end: End
    exit_code: int | None
    """The exit code, or the negative number of the signal that ended it."""
    seconds: float
    granularity: Granularity = "exit"
    tests: Mapping[str, TestOutcome] = field(default_factory=dict)
    uncollected: tuple[str, ...] = ()
    """Test files that could not be loaded."""
    tail: str = ""
    """The last lines of its output."""
    tampered: str | None = None
    """What the runner reported wrong about the canaries."""
    foreign_code: tuple[str, ...] = ()
    """Files of the project's own work tree that the run loaded as code."""
    patched: str | None = None
    """Which function of the test runner the project's code has replaced."""
    detail: str | None = None
    cached: bool = False
    is_whole: bool = True
    """Whether the report of single tests is there to its end; `detail` says what is missing."""
    deselected: tuple[str, ...] = ()
    """Tests that the runner collected and then left out, by its options or by a hook of the project."""
    written: tuple[str, ...] = ()
    """Files of code that the run wrote, though they are part of the commit."""

    @property
    def ending(self) -> str:
        """Say how the command ended, for people."""
        return describe_ending(self.exit_code)

    @property
    def failed(self) -> dict[str, TestOutcome]:
        return {name: test for name, test in self.tests.items() if test.state == "failed"}

    @property
    def passed(self) -> dict[str, TestOutcome]:
        return {name: test for name, test in self.tests.items() if test.state == "passed"}

    @property
    def is_green(self) -> bool:
        """Say whether the command succeeded, ran at least one test where tests are known, and none failed."""
        if self.end != "exited" or self.exit_code != 0 or self.uncollected or not self.is_whole:
            return False
        return self.granularity == "exit" or (bool(self.passed) and not self.failed)

    @property
    def has_started(self) -> bool:
        """Say whether the run says anything about the code: it ended by itself and, where tests are known, ran some."""
        if self.end != "exited":
            return False
        return self.granularity == "exit" or bool(self.tests)

    def narrow(self, files: frozenset[str]) -> "CellRun | None":
        """Return what a run of all tests says of those in some files; None if it says nothing of them.

        A runner that cannot load one file may run none of the others.
        """
        tests = tests_in(self.tests, files)
        is_known = self.granularity == "tests" and not self.uncollected and tests
        return replace(self, tests=tests) if is_known else None


def tests_in(tests: Mapping[str, TestOutcome], files: frozenset[str]) -> dict[str, TestOutcome]:
    """Return the tests of some files, and those whose file is not known."""
    wanted = files | {_package(file) for file in files}
    return {name: test for name, test in tests.items() if test.file is None or test.file in wanted}


def silent_files(tests: Mapping[str, TestOutcome], files: Iterable[str]) -> frozenset[str]:
    """Return the files of which no test is known; none if the file of a test is not known."""
    heard = {test.file for test in tests.values()}
    if None in heard:
        return frozenset()
    return frozenset(file for file in files if not heard & {file, _package(file)})


def _package(file: str) -> str:
    # Go names the package of a test, which is a folder.
    return dirname(file) or "." if file.endswith(".go") else file


def describe_ending(exit_code: int | None) -> str:
    """Say how a command ended; a negative code is the number of the signal that ended it."""
    if exit_code is None:
        return "did not end by itself"
    return f"exit code {exit_code}" if exit_code >= 0 else f"ended by signal {-exit_code}"
