"""What `guard prove` costs: beside one run of its command, and its checkouts beside `git worktree add`.

A command is measured by its CPU time, which other work on the machine changes least, so its test works and does not sleep.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter

from benchmarks.measure import Row, at_most, scratch
from benchmarks.proof_cases.case import environment, git, save
from guard.git.locate import repository_at
from guard.prove.checkout import Checkouts

_IN_A_FOLDER = 100
_COMMAND = f"{sys.executable} -m pytest -q -p no:cacheprovider"
_ONCE = ("sh", "-c", _COMMAND)
_TEST = """import time

import calc


def test_it():
    end = time.process_time() + {seconds}
    while time.process_time() < end:
        pass
    assert calc.VALUE{more}
"""


def rows(files: int = 20_000, rounds: int = 3, run_seconds: float = 5) -> Iterator[Row]:
    with scratch() as folder:
        yield from _runs(folder / "runs", rounds, run_seconds)
        yield from _checkouts(folder / "checkouts", files, rounds)


def _runs(folder: Path, rounds: int, run_seconds: float) -> Iterator[Row]:
    project = folder / "project"
    (project / "tests").mkdir(parents=True)
    git(project, "init", "-q", "-b", "main")
    (project / ".gitignore").write_text("__pycache__/\n")
    # The environment of this Python is active, and guard and the command load compiled code, as they do for everybody.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**environment(folder), "PATH": path, "PYTHONDONTWRITEBYTECODE": ""}
    _write(project, 0, run_seconds, tests=True)
    _write(project, 1, run_seconds, tests=False)
    words = (sys.executable, "-m", "guard", "prove", "--baseline", "HEAD~1", "--command", _COMMAND)
    _count_seconds(project, environ, *words)  # The checkouts are there from then on.
    turns = iter(range(2, 1_000_000))
    for what, tests, limit in (("no test changed", False, 1.15), ("tests changed", True, 2.3)):
        times = []
        for _ in range(rounds):
            _write(project, next(turns), run_seconds, tests=tests)
            once = _count_seconds(project, environ, *_ONCE)
            times.append((_count_seconds(project, environ, *words), once))
        proof, run = (statistics.median(each) for each in zip(*times, strict=True))
        detail = f"{proof:.2f} s beside {run:.2f} s of CPU time"
        yield at_most(f"a proof beside one run of its command, {what}", limit, proof / run, detail)


def _write(project: Path, turn: int, run_seconds: float, *, tests: bool) -> None:
    (project / "calc.py").write_text(f"VALUE = {turn + 1}\n")
    if tests:
        text = _TEST.format(seconds=run_seconds, more=f" > -{turn + 1}")
        (project / "tests/test_calc.py").write_text(text)
    save(project, f"work {turn}")


def _count_seconds(cwd: Path, environ: Mapping[str, str], *argv: str) -> float:
    """Return the CPU time of a command, which must succeed, and of all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=cwd, env=environ, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _succeed(cwd: Path, environ: Mapping[str, str], *argv: str) -> float:
    """Return how long a command takes, which must succeed."""
    begun = perf_counter()
    subprocess.run(argv, cwd=cwd, env=environ, check=True, capture_output=True)
    return perf_counter() - begun


def _checkouts(folder: Path, files: int, rounds: int) -> Iterator[Row]:
    project = folder / "project"
    for number in range(files):
        path = project / f"{number // _IN_A_FOLDER:04}" / f"file_{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * (number % 200))
    git(project, "init", "-q", "-b", "main")
    save(project, "all")
    repository, environ = repository_at(project), environment(folder)
    firsts, nexts, trees = [], [], []
    for turn in range(rounds):
        place, root = folder / f"tree-{turn}", folder / f"cache-{turn}"
        words = ("git", "worktree", "add", "-q", "-d", str(place))
        trees.append(_succeed(project, environ, *words))
        git(project, "worktree", "remove", "--force", str(place))
        firsts.append(_open(Checkouts(repository, root, environ), project))
        for number in range(10):
            (project / "0000" / f"file_{number}.txt").write_text(f"{turn}\n")
        save(project, f"change ten files, {turn}")
        nexts.append(_open(Checkouts(repository, root, environ), project))
        shutil.rmtree(root)
    added = statistics.median(trees)
    for what, times, limit in (
        ("the first time", firsts, 1.0),
        ("for the next commit", nexts, 0.15),
    ):
        median = statistics.median(times)
        detail = f"{median:.2f} s beside {added:.2f} s"
        yield at_most(
            f"a checkout of {files:,} files beside `git worktree add`, {what}",
            limit,
            median / added,
            detail,
        )


def _open(checkouts: Checkouts, project: Path) -> float:
    """Return how long it takes to bring a checkout to HEAD."""
    head = git(project, "rev-parse", "HEAD")
    begun = perf_counter()
    with checkouts.open("head", checkouts.tree_of(head), head):
        return perf_counter() - begun
