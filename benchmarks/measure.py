"""Clocks, tables and scratch folders for the benchmarks."""

import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter


@dataclass(frozen=True)
class Row:
    """One figure: what was measured, what is asked for, what came out."""

    what: str
    target: str
    value: float
    reached: bool
    detail: str
    unit: str = " ×"
    below: str = ""
    """What is printed below the table, where one figure does not say it all."""


def at_least(what: str, limit: float, value: float, detail: str) -> Row:
    return Row(what, f"at least {limit:g} ×", value, value >= limit, detail)


def at_most(what: str, limit: float, value: float, detail: str) -> Row:
    return Row(what, f"at most {limit:g} ×", value, value <= limit, detail)


def none_of(what: str, value: int, detail: str, below: str = "") -> Row:
    return Row(what, "0", value, value == 0, detail, unit="", below=below)


def seconds(action: Callable[[], object]) -> float:
    """How long one call takes."""
    begun = perf_counter()
    action()
    return perf_counter() - begun


def paired(
    rounds: int, first: Callable[[], object], second: Callable[[], object]
) -> tuple[float, float]:
    """The median times of two actions, taken in turns so that a slow moment hits both."""
    times = [(seconds(first), seconds(second)) for _ in range(rounds)]
    return statistics.median(a for a, _ in times), statistics.median(b for _, b in times)


def cpu_seconds(
    argv: Sequence[str],
    rounds: int,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    codes: Collection[int] = range(256),
) -> float:
    """The CPU time of a whole process and those that it waited for, the median of several; its exit code is one of these."""
    times = []
    for _ in range(rounds):
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=cwd, env=environ)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            raise subprocess.CalledProcessError(process.returncode, argv)
        times.append(usage.ru_utime + usage.ru_stime)
    return statistics.median(times)


def least_cpu_seconds(
    calls: Mapping[str, tuple[Sequence[str], Path]], rounds: int, environ: Mapping[str, str]
) -> dict[str, float]:
    """The least CPU time of each call, by its name; all are made in turns, after one of each that compiles what it loads.

    A call may do its work or be refused; any other end is an error.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, (argv, place) in calls.items():
            times[name].append(cpu_seconds(argv, 1, place, environ, codes=(0, 1)))
    return {name: min(found[1:]) for name, found in times.items()}


def environment(home: Path) -> dict[str, str]:
    """The variables for guard in a scratch folder; what tells Python to keep no compiled modules is taken out."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}


def program(name: str) -> str:
    """A program that `pip install` made beside this interpreter."""
    found = shutil.which(name, path=os.path.dirname(sys.executable))
    assert found is not None, f"{name} is not installed beside this interpreter"
    return found


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on a real disk: on a file system in memory a sync would cost nothing."""
    folder = Path(tempfile.mkdtemp(prefix="guard-benchmark-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def machine() -> str:
    """What the figures were measured on."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {git.strip()}"
    )


def table(rows: Sequence[Row]) -> str:
    """The figures as a markdown table."""
    lines = ["| what | target | measured | reached | detail |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.what} | {row.target} | {_shown(row)} | {'yes' if row.reached else 'NO'} | {row.detail} |"
        for row in rows
    ]
    return "\n\n".join(["\n".join(lines), *(row.below for row in rows if row.below)])


def _shown(row: Row) -> str:
    return f"{row.value:.2f}{row.unit}" if row.unit else f"{row.value:g}"


def progress(message: str) -> None:
    sys.stderr.write(f"{message}\n")
