"""Read JUnit XML that the agent's code may have written.

expat itself, with every document type refused, and not defusedxml: entities exist only inside a document type, so that
refusing it leaves nothing to expand; and a handler per element keeps no tree, so that a million testcases cost no memory.
"""

from collections.abc import Iterable
from xml.parsers import expat

from guard.core.prove.outcome import Fault, TestOutcome
from guard.core.prove.session_report import (
    MOST_TESTS,
    RunnerReport,
    merge_tests,
    safe_name,
    safe_text,
)

MOST_BYTES = 64 * 1024 * 1024
_MOST_DEPTH = 64
_MOST_TEXT = 8000
_ASSERTION = ("assert", "comparisonfailure", "expectationfailed")
_CANNOT_RUN = ("importerror", "modulenotfounderror", "noclassdeffounderror", "syntaxerror")


class JunitProblem(Exception):
    """The bytes are no report that guard reads."""


def read_junit(reports: Iterable[bytes]) -> RunnerReport:
    """Merge the tests of several reports; one that cannot be read to its end makes the result incomplete."""
    reader = _Reader()
    problem = None
    for data in reports:
        try:
            reader.read(data)
        except JunitProblem as error:
            problem = problem or str(error)
    return RunnerReport(tests=reader.tests, problem=problem)


class _Reader:
    def __init__(self) -> None:
        self.tests: dict[str, TestOutcome] = {}
        self._count = 0

    def read(self, data: bytes) -> None:
        if len(data) > MOST_BYTES:
            raise JunitProblem(f"the JUnit report is larger than {MOST_BYTES} bytes")
        self._path: list[str] = []
        self._files: list[str | None] = []
        self._case: dict[str, str] | None = None
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._hear
        try:
            # All at once: given piece by piece, expat reads a name of many pieces again with each of them.
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise JunitProblem(f"the JUnit report is not XML: {error}") from None
        except (LookupError, ValueError) as error:
            raise JunitProblem(f"the JUnit report cannot be decoded: {error}") from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._path.append(name)
        if len(self._path) > _MOST_DEPTH:
            raise JunitProblem(f"the JUnit report is nested more than {_MOST_DEPTH} deep")
        if len(self._path) == 1 and name not in ("testsuites", "testsuite"):
            raise JunitProblem(
                f"the file is not a JUnit report: it begins with <{safe_name(name)}>"
            )
        if self._case is None:
            self._files.append(attributes.get("file") or (self._files[-1] if self._files else None))
            if name == "testcase":
                self._begin_case(attributes)
        elif self._path[-2:-1] == ["testcase"] and name in ("failure", "error", "skipped"):
            self._judge(name, attributes)

    def _begin_case(self, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > MOST_TESTS:
            raise JunitProblem(f"the JUnit report names more than {MOST_TESTS} tests")
        self._case = {
            "name": attributes.get("name", ""),
            "class": attributes.get("classname", ""),
            "file": self._files[-1] or "",
            "state": "passed",
            "text": "",
        }
        if attributes.get("status", "").lower() in ("skipped", "disabled", "notrun"):
            self._case["state"] = "skipped"

    def _judge(self, name: str, attributes: dict[str, str]) -> None:
        assert self._case is not None
        if name == "skipped":
            if self._case["state"] == "passed":
                self._case["state"] = "skipped"
            return
        if self._case["state"] != "failed":
            self._case.update(state="failed", element=name, type=attributes.get("type", ""))
            self._case["text"] = attributes.get("message", "")[-_MOST_TEXT:]

    def _hear(self, text: str) -> None:
        if self._case is not None and self._path[-1] in ("failure", "error"):
            self._case["text"] = f"{self._case['text']}\n{text}"[-_MOST_TEXT:]

    def _end(self, _name: str) -> None:
        name = self._path.pop()
        if self._case is None:
            self._files.pop()
        elif name == "testcase" and "testcase" not in self._path:
            case, self._case = self._case, None
            self._files.pop()
            merge_tests(self.tests, _outcome(case))


def _refuse_doctype(*_: object) -> None:
    raise JunitProblem("the JUnit report has a document type, which guard refuses")


def _outcome(case: dict[str, str]) -> TestOutcome:
    parts = [case["file"], case["class"], case["name"]]
    name = safe_name("::".join(part for part in parts if part))
    file = safe_name(case["file"]) if case["file"] else None
    if case["state"] == "failed":
        return TestOutcome(name, file, "failed", _fault(case), safe_text(case["text"]))
    return TestOutcome(name, file, "skipped" if case["state"] == "skipped" else "passed")


def _fault(case: dict[str, str]) -> Fault:
    kind = case["type"].lower()
    if any(word in kind for word in _CANNOT_RUN):
        return "cannot_run"
    if case["element"] == "failure" or any(word in kind for word in _ASSERTION):
        # Most runners say <failure> for an assertion and <error> for anything else; pytest says <failure> for both.
        return "assertion" if not kind or "error" not in kind or "assert" in kind else "error"
    return "error"
