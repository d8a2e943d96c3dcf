"""Make a command's test runners say what each test did, and read it after the run.

Each listener has the command and the environment to run, hears the output, and reads the reports. Reports lie in a folder of
guard's own, new for each run, so that an old one cannot be taken for this run's.
"""

import os
import re
import shutil
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from guard.core.prove.cargo_output import CargoOutput
from guard.core.prove.go_output import GoOutput
from guard.core.prove.javascript_report import read_javascript_reports
from guard.core.prove.junit import MOST_BYTES as MOST_JUNIT_BYTES
from guard.core.prove.junit import read_junit
from guard.core.prove.runners import (
    NamedRunner,
    Runner,
    call_cargo_for_all,
    call_go_with_json,
    call_javascript_with_json,
    call_unittest_module,
    lead_python_path,
    name_runners,
)
from guard.core.prove.session_report import RunnerReport, merge_reports, read_session_reports
from guard.prove.order import Order
from guard.prove.plant import Planted, plant
from guard.system.foreign_files import read_beginning, read_regular

_MOST_REPORT_BYTES = 256 * 1024 * 1024
_MOST_FILES = 2000
_MOST_LOOK_BYTES = 16 * 1024 * 1024
_MOST_LINE = 1024 * 1024
_TAIL_BYTES = 64 * 1024
_CALL = re.compile(rb'"kind": ?"phase".*"when": ?"call"')
_FAILED = re.compile(rb'"kind": ?"phase".*"outcome": ?"failed"')
_MODULE = re.compile(rb"^module\s+\"?([^\s\"]+)", re.MULTILINE)


@dataclass
class Listener:
    """Listens to nothing: the exit code is all that counts."""

    command: str
    environ: Mapping[str, str]

    def hear(self, piece: bytes) -> None:
        """Take a piece of what the command prints."""

    def count(self) -> tuple[int, int]:
        """Return how many tests have run by now, and how many of them failed."""
        return 0, 0

    def tail(self) -> bytes | None:
        """Return the end of what a person would have seen, if that is not what was printed."""
        return None

    def report(self) -> RunnerReport | None:
        """Read what the runner said; None if no single tests are known."""
        return None

    def complaint(self) -> bytes | None:
        """Return what a runner prints that does not find guard's reporter; None if none is missed."""
        return None


def prepare_listener(order: Order, scripts: Mapping[str, str]) -> Listener:
    """Choose how to learn what each test does; `scripts` are those of package.json."""
    if order.kind == "exit":
        return Listener(order.command, {})
    if order.junit is not None:
        return JunitListener(order.command, {}, order.folder, order.junit)
    named = name_runners(order.command, scripts)
    reports = _make_folder(order.scratch / "reports")
    planted = plant(order, named, reports, scripts)
    return _prepare(order, named, planted, reports)


def _prepare(
    order: Order, named: tuple[NamedRunner, ...], planted: Planted, reports: Path
) -> "RunnerListener":
    command = lead_python_path(order.command, str(planted.folder))
    listener = RunnerListener(command, planted.environ, order.folder, reports, planted.package)
    for runner in named:
        before = listener.command
        match runner.runner:
            case "pytest":
                is_heard = not runner.is_isolated
            case "node":
                is_heard = planted.hears_node and runner.takes_options
            case "unittest" if not runner.is_isolated and runner.script is None:
                listener.command = call_unittest_module(before, planted.unittest)
                is_heard = listener.command != before
            case "jest" | "vitest" if runner.takes_options:
                listener.command = call_javascript_with_json(before, runner, str(reports))
                is_heard = listener.command != before
            case "go" if runner.script is None:
                listener.command = call_go_with_json(before)
                listener.outputs["go"] = GoOutput(_read_module(order.folder))
                is_heard = True
            case "cargo":
                listener.command = call_cargo_for_all(before)
                listener.outputs["cargo"] = CargoOutput()
                is_heard = True
            case _:
                is_heard = False
        if is_heard:
            listener.expected.add(runner.runner)
    return listener


def _read_module(folder: Path) -> str:
    """Return the name of the Go module of a folder."""
    found = _MODULE.search(read_beginning(folder / "go.mod", _MOST_LINE) or b"")
    return found[1].decode(errors="replace") if found else ""


def _make_folder(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return folder


@dataclass
class JunitListener(Listener):
    """Reads the JUnit files that the command itself writes into the checkout."""

    folder: Path
    pattern: str

    def __post_init__(self) -> None:
        # A report that lies there before the run, in the tree or from an earlier run, says nothing about this one.
        for path in self._find():
            with suppress(OSError):
                path.unlink()

    def _find(self) -> list[Path]:
        # Never outside of the checkout, and never through a link.
        if os.path.isabs(self.pattern) or ".." in Path(self.pattern).parts:
            return []
        found = (path for path in self.folder.glob(self.pattern) if not path.is_symlink())
        return sorted(path for path in found if path.parent.resolve().is_relative_to(self.folder))

    def report(self) -> RunnerReport:
        paths = self._find()
        if not paths:
            return RunnerReport(problem=f"the command wrote no JUnit report at {self.pattern}")
        if len(paths) > _MOST_FILES:
            return RunnerReport(problem=f"there are more than {_MOST_FILES} JUnit reports")
        return read_junit(_read_bounded(paths, MOST_JUNIT_BYTES))


def _read_bounded(paths: list[Path], most: int) -> list[bytes]:
    """Read regular files; one that cannot be read counts as empty, and is then no whole report."""
    found = []
    for path in paths:
        try:
            found.append(read_regular(path, most, follow=False))
        except OSError:
            found.append(b"")
    return found


@dataclass
class RunnerListener(Listener):
    """Reads what the runners say: lines of JSON by guard's reporters inside them, JSON reports, or lines of their output.

    The reporter for pytest is given to every command: make, nox and scripts hand the environment on.
    """

    folder: Path
    reports: Path
    package: str
    """The random name of guard's reporters for Python."""
    expected: set[Runner] = field(default_factory=set)
    """The runners whose report would be missed."""
    outputs: dict[Runner, GoOutput | CargoOutput] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._offsets: dict[Path, int] = {}
        self._done = self._failed = 0
        self._rest = b""
        self._lines: deque[str] = deque()
        self._kept = 0

    def hear(self, piece: bytes) -> None:
        if not self.outputs:
            return
        *lines, rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._hear_line(line)
        # A line without an end is no report.
        self._rest = rest if len(rest) <= _MOST_LINE else b""

    def _hear_line(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        for output in self.outputs.values():
            shown = output.hear(line)
            if isinstance(output, GoOutput):
                text = shown
        self._lines.append(text)
        self._kept += len(text) + 1
        while self._kept > _TAIL_BYTES and self._lines:
            self._kept -= len(self._lines.popleft()) + 1

    def tail(self) -> bytes | None:
        if "go" not in self.outputs:
            return None
        last = [self._rest.decode(errors="replace")] if self._rest else []
        return "\n".join([*self._lines, *last]).encode()

    def _files(self) -> list[Path]:
        return sorted(self.reports.glob("*.jsonl"))

    def count(self) -> tuple[int, int]:
        for path in self._files()[:_MOST_FILES]:
            with suppress(OSError), path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                piece = file.read(_MOST_LOOK_BYTES)
                whole = piece[: piece.rfind(b"\n") + 1]
                self._offsets[path] = self._offsets.get(path, 0) + len(whole)
                self._done += len(_CALL.findall(whole))
                self._failed += len(_FAILED.findall(whole))
        return self._done, self._failed

    def report(self) -> RunnerReport | None:
        found = [report for report in self._read() if report is not None]
        merged = merge_reports(found)
        silent = {name for name, output in self.outputs.items() if _is_unclear(output)}
        missing = self.expected - silent - merged.runners
        has_failed = any(test.state == "failed" for test in merged.tests.values())
        if missing and merged.problem is None and not has_failed:
            problem = f"{sorted(missing)[0]} wrote no report of single tests"
            return replace(merged, problem=problem)
        return merged if found else None

    def complaint(self) -> bytes | None:
        return None if self._files() else b"No module named '%s'" % self.package.encode()

    def _read(self) -> list[RunnerReport | None]:
        files, documents = self._files(), sorted(self.reports.glob("*.json"))
        sizes = {path: _size(path) for path in [*files, *documents]}
        if len(sizes) > _MOST_FILES or sum(sizes.values()) > _MOST_REPORT_BYTES:
            return [RunnerReport(problem="the report of single tests is too large")]
        found = [output.report() for output in self.outputs.values()]
        if any(sizes.get(path, -1) < offset for path, offset in self._offsets.items()):
            found.append(RunnerReport(problem="the command changed the report of its tests"))
        if files:
            found.append(read_session_reports(_read_bounded(files, _MOST_REPORT_BYTES)))
        if documents:
            data = _read_bounded(documents, _MOST_REPORT_BYTES)
            runners = frozenset(path.name.partition("-")[0] for path in documents)
            report = read_javascript_reports(data, str(self.folder))
            found.append(replace(report, runners=runners))
        return found


def _is_unclear(output: GoOutput | CargoOutput) -> bool:
    """Say whether a runner spoke in a way that says nothing of single tests."""
    return output.has_spoken and output.report() is None


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.lstat().st_size
    return 0
