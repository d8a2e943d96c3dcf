"""Run `python -m unittest` with its own arguments, and write down what each test did."""

from __future__ import annotations

import os
import re
import sys
import unittest
from unittest import loader

from .record import (
    Record,
    fault,
    foreign_modules,
    last_lines,
    patched_by_code,
    read_settings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SETTINGS = read_settings()
_FOLDER = _SETTINGS["folder"]
_RECORD = Record(_SETTINGS["reports"])


class _Result(unittest.TextTestResult):
    """Records each outcome; a test without any other one has passed."""

    def _write(self, test: Any, outcome: str, kind: str = "", text: str = "") -> None:
        name, file = _name(test)
        _RECORD.write(
            "phase",
            id=name,
            file=file,
            when="call",
            outcome=outcome,
            xfail=False,
            raised="raised" if outcome == "failed" else "no",
            fault=kind,
            text=text,
        )

    def _write_error(self, test: Any, error: Any) -> None:
        # Without the lines of unittest itself, as a person would have seen it.
        text = last_lines(self._exc_info_to_string(error, test))  # type: ignore[attr-defined]
        kind = fault(error[1], _FOLDER, set())
        if isinstance(test, loader._FailedTest):  # type: ignore[attr-defined]
            _RECORD.write("uncollected", file=_name(test)[0], text=text)
        else:
            self._write(test, "failed", kind, text)

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        super().addSuccess(test)
        self._write(test, "passed")

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._write_error(test, err)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._write_error(test, err)

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._write(test, "skipped", text=last_lines(reason))

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self._write(test, "skipped", text="expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self._write(test, "failed", "assertion", "unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._write_error(test, err)


class _Runner(unittest.TextTestRunner):
    def __init__(self, *args: Any, **words: Any) -> None:
        # A run that stops at the first failure says nothing of the rest.
        super().__init__(*args, **{**words, "failfast": False, "resultclass": _Result})

    def run(self, test: Any) -> Any:
        result = super().run(_selected(test))
        _run_canaries()
        _RECORD.write(
            "end",
            exit=0 if result.wasSuccessful() else 1,
            stopped=result.shouldStop,
            foreign=foreign_modules(_SETTINGS["project"], _FOLDER),
            patched=patched_by_code(_FOLDER, set()),
        )
        return result


def _run_canaries() -> None:
    _RECORD.write("canaries", count=1)
    for role, name in _SETTINGS["canaries"].items():
        value = 1 if role == "ok" else 2
        body = {name: lambda self, value=value: self.assertEqual(1, value)}  # noqa: PT009
        result = unittest.TestResult()
        unittest.TestSuite([type(name, (unittest.TestCase,), body)(name)]).run(result)
        has_failed = len(result.failures) == 1
        outcome, raised = ("failed", "raised") if has_failed else ("passed", "no")
        _RECORD.write("canary", role=role, place="", when="call", outcome=outcome, raised=raised)


def _selected(test: Any) -> Any:
    if _SETTINGS["select"] is None:
        return test
    wanted = set(_SETTINGS["select"])
    return unittest.TestSuite(item for item in _flatten(test) if _name(item)[1] in wanted)


def _flatten(test: Any) -> Any:
    if not isinstance(test, unittest.TestSuite):
        yield test
        return
    for item in test:
        yield from _flatten(item)


def _name(test: Any) -> tuple[str, str | None]:
    """Return the id of a test with its file as seen from the checkout, and that file."""
    if isinstance(test, loader._FailedTest):  # type: ignore[attr-defined]
        module = test._testMethodName
        file = _find(module)
        return (file or module), file
    words = test.id()
    if not hasattr(test, "_testMethodName"):
        # A class or module whose fixture failed: `setUpClass (tests.test_a.TestA)`.
        place = re.search(r"\(([\w.]+)\)$", words)
        file = _file_of(place[1]) if place else None
        return (f"{file}::{words}" if file else words), file
    file = _file_of(type(test).__module__)
    if file is None:
        return words, None
    return f"{file}::{type(test).__qualname__}::{test._testMethodName}", file


def _file_of(name: str) -> str | None:
    """Return the file of a module, or of the module of a class."""
    while name and name not in sys.modules:
        name = name.rpartition(".")[0]
    path = getattr(sys.modules.get(name), "__file__", None)
    return _relative(path) if path else None


def _find(module: str) -> str | None:
    for folder in sys.path:
        for end in (".py", os.sep + "__init__.py"):
            path = os.path.join(folder or os.getcwd(), module.replace(".", os.sep) + end)
            if os.path.exists(path):
                return _relative(path)
    return None


def _relative(path: str) -> str | None:
    found = os.path.relpath(os.path.realpath(path), _FOLDER)
    return None if found.startswith(os.pardir) else found


if __name__ == "__main__":
    _RECORD.write("begin", worker=False, runner="unittest")
    sys.argv[0] = "python -m unittest"
    unittest.main(module=None, testRunner=_Runner)
