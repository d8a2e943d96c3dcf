"""Run a check in a checkout, and learn what each of its tests did."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote

from guard.core.base.text import escape, plural
from guard.core.prove.outcome import CellRun, tests_in
from guard.core.prove.runners import package_scripts
from guard.core.prove.session_report import RunnerReport
from guard.probe.environment import without_session
from guard.prove.bounded_run import TAIL_BYTES, BoundedRun, Ended
from guard.prove.listen import Listener, prepare_listener
from guard.prove.order import Order
from guard.system.foreign_files import read_beginning

__all__ = ["Order", "execute"]

_PROGRESS_SECONDS = 1.0
_UP_LOG, _UP_FAILED = "up.log", "up.failed"
_MOST_PACKAGE_BYTES = 1024 * 1024
_USERS_FOLDERS = ("HOME", "XDG_")
"""Variables of folders that stay the user's own, also where they lie in the project."""


def execute(order: Order, progress: Callable[[str], None]) -> CellRun:
    """Run the command to its end or its limits; nothing of it runs any more when this returns."""
    folder = order.folder.resolve()
    order = replace(
        order, folder=folder, project=order.project.resolve(), scratch=order.scratch.resolve()
    )
    listener = prepare_listener(order, _read_scripts(folder))
    ended = _run(order, listener, progress)
    complaint = listener.complaint()
    if complaint is not None and complaint in ended.tail:
        # A recipe or a script has set PYTHONPATH anew, so pytest does not start: its exit code has to do.
        listener = Listener(order.command, {})
        ended = _run(order, listener, progress)
    return _services_problem(order) or _as_in_project(_cell_run(order, listener, ended), folder)


def _run(order: Order, listener: Listener, progress: Callable[[str], None]) -> Ended:
    meter = _Meter(listener, progress)
    return BoundedRun(
        _with_services(order, listener.command),
        order.folder,
        {**_environment(order), **listener.environ},
        order.timeout_seconds,
        listener.hear,
        meter.look,
        order.lends,
    ).run()


def _with_services(order: Order, command: str) -> str:
    """Return the script that starts the services, in the same run, so that they end with it, and then runs the command."""
    if not order.up:
        return command
    log, failed = (quote(str(order.scratch / name)) for name in (_UP_LOG, _UP_FAILED))
    start = f"(\n{order.up}\n) >{log} 2>&1 </dev/null || {{ : >{failed}; exit 1; }}"
    return f"rm -f {failed}\n{start}\n{command}"


def _services_problem(order: Order) -> CellRun | None:
    """Return what a run shows whose services did not start."""
    if not order.up or not (order.scratch / _UP_FAILED).exists():
        return None
    said = read_beginning(order.scratch / _UP_LOG, TAIL_BYTES) or b""
    detail = f"the services do not start: {order.up}"
    return CellRun("cannot_start", None, 0.0, tail=_safe_tail(said), detail=escape(detail))


def _environment(order: Order) -> dict[str, str]:
    temporary = order.scratch / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {
        name: value if name.startswith(_USERS_FOLDERS) else _lead_to_checkout(value, order)
        for name, value in without_session(order.environ).items()
        if not name.startswith("GUARD_")
    }
    return {
        **kept,
        "CI": "1",
        "GUARD_SLOT": order.slot,
        "TMPDIR": str(temporary),
        "PWD": str(order.folder),
    }


def _lead_to_checkout(value: str, order: Order) -> str:
    """Return a variable with the paths of the project in it led to what the checkout has in their place.

    OLDPWD, INIT_CWD or GITHUB_WORKSPACE would let a command test the work tree. What only the work tree has stays: `.venv/bin`.
    """
    return os.pathsep.join(_counterpart(part, order) for part in value.split(os.pathsep))


def _counterpart(path: str, order: Order) -> str:
    if not os.path.isabs(path):
        return path
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(order.project) or real.is_relative_to(order.folder):
        return path
    found = order.folder / real.relative_to(order.project)
    is_own = found.exists() and found.resolve().is_relative_to(order.folder)
    return str(found) if is_own else path


def _read_scripts(folder: Path) -> dict[str, str]:
    return package_scripts(read_beginning(folder / "package.json", _MOST_PACKAGE_BYTES))


class _Meter:
    """Says at most once a second how far a run is."""

    def __init__(self, listener: Listener, progress: Callable[[str], None]) -> None:
        self._listener, self._progress = listener, progress
        self._next = _PROGRESS_SECONDS

    def look(self, seconds: float) -> None:
        if seconds < self._next:
            return
        self._next = seconds + _PROGRESS_SECONDS
        done, failed = self._listener.count()
        words = f", {plural(done, 'test')}, {failed} failed" if done else ""
        self._progress(f"{seconds:.0f} s{words}")


def _cell_run(order: Order, listener: Listener, ended: Ended) -> CellRun:
    said = listener.tail()
    tail = _safe_tail(ended.tail if said is None else said)
    problem = ended.problem or _end_problem(order, ended)
    report = listener.report()
    if report is None:
        return CellRun(ended.end, ended.code, ended.seconds, tail=tail, detail=problem or None)
    report = _select(report, order.select)
    return CellRun(
        ended.end,
        ended.code,
        ended.seconds,
        "tests",
        report.tests,
        report.uncollected,
        tail,
        report.tampered,
        report.foreign_code,
        report.patched,
        problem or report.problem,
        is_whole=report.problem is None,
        deselected=report.deselected,
    )


def _as_in_project(run: CellRun, folder: Path) -> CellRun:
    """Name the files of the checkout in all texts as the project does: who mends what failed must not do it in the checkout."""
    tests = {
        name: replace(test, text=_without_folder(test.text, folder)) if test.text else test
        for name, test in run.tests.items()
    }
    return replace(run, tests=tests, tail=_without_folder(run.tail, folder))


def _without_folder(text: str, folder: Path) -> str:
    place = f"{folder}{os.sep}"
    return text.replace(f"file://{place}", "").replace(place, "")


def _end_problem(order: Order, ended: Ended) -> str:
    if ended.end == "timeout":
        return f"the command did not end within {order.timeout_seconds:g} s"
    if ended.end == "disk_full":
        return f"the command left little free space on the disk of {order.folder}"
    return ""


def _select(report: RunnerReport, select: frozenset[str] | None) -> RunnerReport:
    if select is None:
        return report
    return replace(report, tests=tests_in(report.tests, select))


def _safe_tail(data: bytes) -> str:
    lines = data.decode(errors="replace").splitlines()
    return "\n".join(escape(line) for line in lines)
