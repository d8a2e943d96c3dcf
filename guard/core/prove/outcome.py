"""What one run of a check showed: how it ended, and what each test did."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """The last lines of what it said when it failed."""


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
    detail: str | None = None
    cached: bool = False

    @property
    def failed(self) -> dict[str, TestOutcome]:
        return {name: test for name, test in self.tests.items() if test.state == "failed"}

    @property
    def passed(self) -> dict[str, TestOutcome]:
        return {name: test for name, test in self.tests.items() if test.state == "passed"}

    @property
    def is_green(self) -> bool:
        """Say whether the command succeeded, ran at least one test where tests are known, and none failed."""
        if self.end != "exited" or self.exit_code != 0 or self.uncollected:
            return False
        return self.granularity == "exit" or (bool(self.passed) and not self.failed)

    @property
    def has_started(self) -> bool:
        """Say whether the run says anything about the code: it ended by itself and, where tests are known, ran some."""
        if self.end != "exited":
            return False
        return self.granularity == "exit" or bool(self.tests)
