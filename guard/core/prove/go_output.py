"""Read what `go test -json` prints."""

import json
import re
from typing import Any

from guard.core.base.text import shorten
from guard.core.prove.outcome import Fault, TestOutcome
from guard.core.prove.session_report import (
    MOST_TESTS,
    RunnerReport,
    merge_tests,
    safe_name,
    safe_text,
)

_MOST_OUTPUT = 8000
_NO_TESTS = re.compile(r"\[no test files\]|no test files")
_NOT_BUILT = re.compile(r"FAIL\s+(\S+) \[(?:build|setup) failed\]")
_ENDS = {"pass": "passed", "fail": "failed", "skip": "skipped"}


class GoOutput:
    """Takes lines, and knows what each test of each package did."""

    def __init__(self, module: str = "") -> None:
        self._module = module
        self._tests: dict[str, TestOutcome] = {}
        self._running: dict[tuple[str, str], str] = {}
        self._packages: dict[str, str] = {}
        """The end of what each package printed, until the package has ended."""
        self._uncollected: dict[str, None] = {}
        self._unfinished: dict[str, None] = {}
        self._failed: set[str] = set()
        self.has_spoken = False

    def hear(self, line: bytes) -> str:
        """Take a line, and return what a person would have seen of it."""
        text = line.decode(errors="replace")
        failed = _NOT_BUILT.match(text)
        if failed:
            self.has_spoken = True
            self._uncollected[self._folder(failed[1])] = None
        if not line.startswith(b"{"):
            return text
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return text
        if not isinstance(event, dict) or not isinstance(event.get("Action"), str):
            return text
        self.has_spoken = True
        self._take(event)
        return str(event.get("Output", "")).removesuffix("\n")

    def _take(self, event: dict[str, Any]) -> None:
        package, test = str(event.get("Package", "")), event.get("Test")
        action = event["Action"]
        if not package:
            return
        self._packages.setdefault(package, "")
        if isinstance(test, str):
            self._take_test(package, test, action, str(event.get("Output", "")))
        elif action == "output":
            said = self._packages[package] + str(event.get("Output", ""))
            self._packages[package] = said[-_MOST_OUTPUT:]
        elif action in _ENDS:
            self._end_package(package, action)

    def _take_test(self, package: str, test: str, action: str, output: str) -> None:
        key = (package, test)
        if action in ("run", "output") and len(self._running) <= MOST_TESTS:
            said = self._running.get(key, "") + output
            self._running[key] = said[-_MOST_OUTPUT:]
        elif action in _ENDS:
            self._end_test(package, test, _ENDS[action], self._running.pop(key, ""))

    def _end_test(self, package: str, test: str, state: str, said: str) -> None:
        folder = self._folder(package)
        name = safe_name(f"{folder}::{test}")
        if state == "failed":
            self._failed.add(folder)
            fault: Fault = "error" if "panic:" in said else "assertion"
            outcome = TestOutcome(name, folder, "failed", fault, safe_text(said))
        elif state == "skipped":
            outcome = TestOutcome(name, folder, "skipped", text=safe_text(said))
        else:
            outcome = TestOutcome(name, folder, "passed")
        if len(self._tests) <= MOST_TESTS:
            merge_tests(self._tests, outcome)

    def _end_package(self, package: str, action: str) -> None:
        said = self._packages[package]
        open_tests = [key for key in self._running if key[0] == package]
        for key in open_tests:
            self._end_test(package, key[1], "failed", self._running.pop(key) + said)
        folder = self._folder(package)
        if action == "fail" and folder not in self._failed:
            self._uncollected[folder] = None
        # A package that calls os.Exit(0) before its tests run is reported as passed.
        is_finished = any(line == "PASS" for line in said.splitlines())
        if action == "pass" and not is_finished and not _NO_TESTS.search(said):
            self._unfinished[folder] = None

    def _folder(self, package: str) -> str:
        """Return the folder of a package, from the root of the module."""
        name = package.partition(" ")[0]
        if name == self._module:
            return "."
        return safe_name(name.removeprefix(f"{self._module}/"))

    def report(self) -> RunnerReport | None:
        """Return what all packages said; None if there was no event."""
        if not self.has_spoken:
            return None
        problem = None
        if self._unfinished:
            first = shorten(next(iter(self._unfinished)), 200)
            problem = f"the package {first} ended before its tests had run"
        elif self._running:
            problem = "go test ended before its report was whole"
        if len(self._tests) > MOST_TESTS:
            problem = f"the report names more than {MOST_TESTS} tests"
        return RunnerReport(
            self._tests,
            tuple(self._uncollected),
            problem=problem,
            runners=frozenset({"go"}),
        )
