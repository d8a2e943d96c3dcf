"""Read what `cargo test` prints: the lines of Rust's own test harness."""

import re
from collections import Counter

from guard.core.prove.outcome import Fault, TestOutcome
from guard.core.prove.session_report import (
    MOST_TESTS,
    RunnerReport,
    merge_tests,
    safe_name,
    safe_text,
)

_MOST_OUTPUT = 8000
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TARGET = re.compile(r"\s*(?:Running (?:unittests )?(.+?) \(.*\)|(Doc-tests .+))$")
_TEST = re.compile(r"test (.+?) \.\.\. (ok|FAILED|ignored(?:, .*)?|bench: .*)$")
_BEGINS = re.compile(r"running \d+ tests?$")
_SUMMARY = re.compile(
    r"test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured"
)
_LINE = re.compile(r" \(line \d+\)")
"""Where a documentation test stands: other lines above it do not make it another test."""
_ASSERTION = re.compile(r"panicked at[^\n]*\n?[^\n]*assertion")
_SAID = re.compile(r"---- (.+) stdout ----$")


class CargoOutput:
    """Takes lines, and knows what each test of each target did."""

    def __init__(self) -> None:
        self._target = ""
        self._is_running = self._is_odd = self._is_cut = self.has_spoken = False
        self._tests: dict[str, TestOutcome] = {}
        self._counts: Counter[str] = Counter()
        self._said: dict[str, str] = {}
        self._speaker: str | None = None

    def hear(self, line: bytes) -> str:
        """Take a line, and return what a person would have seen of it."""
        text = line.decode(errors="replace")
        plain = _COLOURS.sub("", text).rstrip()
        target, test, summary = _TARGET.match(plain), _TEST.match(plain), _SUMMARY.match(plain)
        if target:
            self._begin(target[1] or target[2])
        elif _BEGINS.match(plain):
            self._is_running = self.has_spoken = True
        elif test and self._is_running:
            self._end_test(test[1], test[2])
        elif summary:
            self._end_target([int(count) for count in summary.groups()])
        else:
            self._listen(plain)
        return text

    def _begin(self, target: str) -> None:
        # A test that ends the process with code 0 leaves no summary, and cargo goes on as if all were well.
        self._is_cut |= self._is_running
        self._target, self._is_running = target, True
        self._counts.clear()
        self._said.clear()

    def _end_test(self, name: str, how: str) -> None:
        state = {"ok": "passed", "FAILED": "failed"}.get(how, "skipped")
        self._counts["measured" if how.startswith("bench") else state] += 1
        whole = self._name(name)
        if state == "failed":
            outcome = TestOutcome(whole, None, "failed", "error")
        elif state == "skipped":
            outcome = TestOutcome(whole, None, "skipped", text=safe_text(how))
        else:
            outcome = TestOutcome(whole, None, "passed")
        if len(self._tests) <= MOST_TESTS:
            merge_tests(self._tests, outcome)

    def _name(self, name: str) -> str:
        bare = _LINE.sub("", name.removesuffix(" - should panic"))
        return safe_name(f"{self._target}::{bare}")

    def _listen(self, line: str) -> None:
        speaker = _SAID.match(line)
        if speaker:
            self._speaker = speaker[1]
            self._said[self._speaker] = ""
        elif line == "failures:":
            self._speaker = None
        elif self._speaker is not None:
            self._said[self._speaker] = f"{self._said[self._speaker]}{line}\n"[-_MOST_OUTPUT:]

    def _end_target(self, counts: list[int]) -> None:
        names = ("passed", "failed", "skipped", "measured")
        # With --nocapture the tests' own output may stand inside of these lines.
        self._is_odd |= counts != [self._counts[name] for name in names]
        for name, said in self._said.items():
            whole = self._name(name)
            known = self._tests.get(whole)
            if known is not None and known.state == "failed":
                fault: Fault = "assertion" if _ASSERTION.search(said) else "error"
                text = safe_text(said)
                self._tests[whole] = TestOutcome(whole, None, "failed", fault, text)
        self._is_running, self._speaker = False, None
        self._counts.clear()

    def report(self) -> RunnerReport | None:
        """Return what all targets said; None if no test harness spoke, or if its lines are mixed with others."""
        if not self.has_spoken or self._is_odd:
            return None
        problem = None
        if self._is_running or self._is_cut:
            problem = "a target of cargo test ended before its tests had run"
        if len(self._tests) > MOST_TESTS:
            problem = f"the report names more than {MOST_TESTS} tests"
        return RunnerReport(self._tests, problem=problem, runners=frozenset({"cargo"}))
