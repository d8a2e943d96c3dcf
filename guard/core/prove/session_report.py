"""Read what guard's own reporters inside pytest, unittest and node wrote about a run: JSON lines, one file per process.

The agent's code runs in the same processes and could write there too, so nothing in a line is trusted to have a shape.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from guard.core.base.text import escape, plural, shorten
from guard.core.prove.outcome import Fault, State, TestOutcome

MOST_TESTS = 200_000
_MOST_NAME = 500
_MOST_TEXT = 4000
_FAULTS: dict[str, Fault] = {
    "assertion": "assertion",
    "error": "error",
    "cannot_run": "cannot_run",
}
_RANK = {"failed": 2, "passed": 1, "skipped": 0}
_BROKEN_OFF = (2, 3, 4)
"""Exit codes of pytest: interrupted, internal error, wrong usage."""


@dataclass(frozen=True)
class RunnerReport:
    """What the runners of one command said."""

    tests: dict[str, TestOutcome] = field(default_factory=dict)
    uncollected: tuple[str, ...] = ()
    foreign_code: tuple[str, ...] = ()
    deselected: tuple[str, ...] = ()
    """Tests that were collected and then left out, by an option of the runner or by a hook."""
    tampered: str | None = None
    patched: str | None = None
    """Which function of a runner the project's code has replaced."""
    problem: str | None = None
    """Why the report is not whole; None if it is."""
    runners: frozenset[str] = frozenset()
    """The runners that reported."""


def merge_tests(tests: dict[str, TestOutcome], test: TestOutcome) -> None:
    """Add an outcome; of two with the same id a failed one outranks a passed one, and that a skipped one."""
    known = tests.get(test.id)
    if known is None or _RANK[test.state] > _RANK[known.state]:
        tests[test.id] = test


def safe_name(text: object) -> str:
    return shorten(escape(str(text)), _MOST_NAME)


def safe_text(text: object) -> str:
    """Make the last lines of a text safe for a terminal."""
    return "\n".join(escape(line) for line in str(text)[-_MOST_TEXT:].splitlines())


def read_session_reports(reports: Iterable[bytes]) -> RunnerReport:
    """Merge the reports of all processes. One without its end line makes the whole report incomplete."""
    sessions = [_Session(data) for data in reports]
    merged = merge_reports(session.report() for session in sessions)
    for session in sessions:
        _fail_unfinished(session, merged.tests)
    problem = merged.problem
    if all(session.is_worker for session in sessions):
        problem = problem or "the test runner ended before its report was whole"
    tampered = merged.tampered or _judge_workers(sessions)
    return replace(merged, tampered=tampered, problem=problem)


def merge_reports(reports: Iterable[RunnerReport]) -> RunnerReport:
    """Merge what several runners of one command said."""
    found = list(reports)
    tests: dict[str, TestOutcome] = {}
    for report in found:
        for test in report.tests.values():
            merge_tests(tests, test)
    return RunnerReport(
        tests,
        tuple(dict.fromkeys(file for report in found for file in report.uncollected)),
        tuple(dict.fromkeys(file for report in found for file in report.foreign_code)),
        tuple(dict.fromkeys(name for report in found for name in report.deselected)),
        next((report.tampered for report in found if report.tampered is not None), None),
        next((report.patched for report in found if report.patched is not None), None),
        next((report.problem for report in found if report.problem is not None), None),
        frozenset().union(*(report.runners for report in found)),
    )


def _fail_unfinished(session: "_Session", tests: dict[str, TestOutcome]) -> None:
    """Fail a file that counts as a passed test although its process ended before its tests did."""
    file = session.file
    if file is not None and not session.has_end and file in tests:
        text = "its process ended itself before its tests had run"
        merge_tests(tests, TestOutcome(file, file, "failed", "error", text))


def _judge_workers(sessions: "list[_Session]") -> str | None:
    """Say that the workers of a parallel run have not run all canaries, though all tests were dealt out."""
    workers = [session for session in sessions if session.is_worker and session.file is None]
    expected = max((worker.canary_count for worker in workers), default=0)
    if len({place for worker in workers for place in worker.failing}) >= expected:
        return None
    if all(session.has_ended_normally for session in sessions if not session.is_worker):
        return "the runner left out tests that its workers had collected, and ended normally"
    return None


class _Session:
    """One process."""

    def __init__(self, data: bytes) -> None:
        self._phases: dict[str, list[dict[str, Any]]] = {}
        self._uncollected: list[str] = []
        self._deselected: list[str] = []
        self.failing: dict[str, dict[str, dict[str, Any]]] = {}
        """Of the canaries that must fail: what was said of each, by its place and phase."""
        self.canary_count = 0
        self.is_worker = self._has_false_report = False
        self.runner = ""
        self.file: str | None = None
        """The one file that a worker runs."""
        self._end: dict[str, Any] | None = None
        self._overflowed = False
        for line in data.splitlines():
            self._read(line)

    def _read(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(found, dict):
            return
        match found.get("kind"):
            case "begin" if not self.runner:
                self.is_worker = found.get("worker") is True
                self.runner = str(found.get("runner")).partition(" ")[0]
                self.file = safe_name(found["file"]) if "file" in found else None
            case "phase":
                self._add_phase(found)
            case "uncollected":
                self._uncollected.append(safe_name(found.get("file")))
            case "deselected":
                names = found.get("ids")
                self._deselected += map(safe_name, names if isinstance(names, list) else [])
            case "canaries":
                count = found.get("count")
                self.canary_count = count if isinstance(count, int) else 0
            case "canary":
                self._add_canary(found)
            case "end":
                self._end = found

    def _add_phase(self, found: dict[str, Any]) -> None:
        name = safe_name(found.get("id"))
        if name in self._phases or len(self._phases) < MOST_TESTS:
            self._phases.setdefault(name, []).append(found)
        else:
            self._overflowed = True

    def _add_canary(self, found: dict[str, Any]) -> None:
        if found.get("role") == "reported" and found.get("outcome") == "passed":
            self._has_false_report = True
        if found.get("role") == "fail":
            phases = self.failing.setdefault(str(found.get("place")), {})
            phases[str(found.get("when"))] = found

    def report(self) -> RunnerReport:
        tests = {name: _outcome(name, phases) for name, phases in self._phases.items()}
        foreign = self._end.get("foreign") if self._end is not None else None
        patched = self._end.get("patched") if self._end is not None else None
        return RunnerReport(
            tests,
            tuple(self._uncollected),
            tuple(map(safe_name, foreign)) if isinstance(foreign, list) else (),
            tuple(self._deselected),
            self._judge_canaries(tests),
            safe_name(patched) if patched else None,
            None if self.is_worker else self._problem(tests),
            frozenset() if self.is_worker else frozenset({self.runner}),
        )

    def _problem(self, tests: dict[str, TestOutcome]) -> str | None:
        if self._overflowed:
            return f"the report names more than {MOST_TESTS} tests"
        if self._end is None:
            return "the test runner ended before its report was whole"
        is_explained = self._uncollected or any(test.state == "failed" for test in tests.values())
        if self._end.get("exit") in _BROKEN_OFF and not is_explained:
            return f"the test runner broke off with exit code {self._end['exit']}"
        if self._end.get("outside"):
            return f"pytest is steered by {safe_name(self._end['outside'])}, which is in no commit"
        if self._end.get("stopped") is True:
            return "the test runner stopped before it had run all its tests"
        return None

    def _judge_canaries(self, tests: dict[str, TestOutcome]) -> str | None:
        """Say what was reported wrong about the canaries; None if nothing is known to be wrong.

        A project may skip or fail every test that it does not know: then a canary says nothing.
        """
        if self._has_false_report:
            return "the runner reported a test as passed that it did not run"
        for phases in self.failing.values():
            wrong = _judge_canary(phases)
            if wrong is not None:
                return wrong
        # The tests of a parallel run are dealt out: another worker may have the canaries.
        is_lost = len(self.failing) < self.canary_count and not self.is_worker
        if not is_lost or not self.has_ended_normally:
            return None
        count = plural(len(tests), "test")
        return f"the runner left out tests that it had collected, and ended normally after {count}"

    @property
    def has_end(self) -> bool:
        return self._end is not None

    @property
    def has_ended_normally(self) -> bool:
        """Say whether all that was collected should have run: nothing that failed explains that the session stopped."""
        if self._end is None:
            return False
        code = self._end.get("exit")
        if code == 0:
            return not self._has_crashed
        return (
            self._end.get("stopped") is not True
            and code not in _BROKEN_OFF
            and not self._has_crashed
        )

    @property
    def _has_crashed(self) -> bool:
        """Say whether a worker crashed: its controller reports the test that ran, in no phase."""
        return any(
            phase.get("when") == "???" for phases in self._phases.values() for phase in phases
        )


def _judge_canary(phases: dict[str, dict[str, Any]]) -> str | None:
    """Say what is wrong with the report about a test that must fail."""
    setup, call = phases.get("setup", {}), phases.get("call")
    if call is None:
        is_ready = setup.get("outcome") == "passed" and setup.get("raised") == "no"
        return "the runner did not run a test that it had set up" if is_ready else None
    if call.get("raised") in ("skip", "xfail"):
        return None
    if call.get("raised") == "raised" and call.get("outcome") == "failed":
        return None
    return "the runner did not report a test as failed that fails"


def _outcome(name: str, phases: list[dict[str, Any]]) -> TestOutcome:
    """Merge what setup, call and teardown said: one failure is a failure, also of a teardown."""
    state: State = "passed" if any(phase.get("when") == "call" for phase in phases) else "skipped"
    reason, file = "", phases[0].get("file")
    safe_file = safe_name(file) if isinstance(file, str) else None
    for phase in phases:
        if _has_failed(phase):
            fault = _FAULTS.get(str(phase.get("fault")), "error")
            if not phase.get("raised") or phase.get("raised") == "no":
                # A strict xfail that passes has no exception; a crashed worker has no phase.
                fault = "assertion" if phase.get("when") == "call" else "error"
            return TestOutcome(name, safe_file, "failed", fault, safe_text(phase.get("text", "")))
        if phase.get("outcome") == "skipped":
            state, reason = "skipped", safe_text(phase.get("text", ""))
    return TestOutcome(name, safe_file, state, text=reason)


def _has_failed(phase: dict[str, Any]) -> bool:
    if phase.get("outcome") == "failed":
        return True
    # A hook of the project has turned a failure into a success.
    return (
        phase.get("raised") == "raised"
        and phase.get("outcome") == "passed"
        and phase.get("xfail") is not True
    )
