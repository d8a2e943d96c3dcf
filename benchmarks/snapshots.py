"""`guard snapshot` beside git: the first of a tree beside `git add -A` of it, the next one beside `git status`."""

import argparse
import inspect
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Row, at_most, scratch

_IN_A_FOLDER = 100
_MOST_BYTES = 4096
_CODE = (argparse, subprocess, tarfile, typing)
"""What the files have in them is cut out of these."""
_REST_SECONDS = 3
"""Nothing is so young any more that git or guard would have to read it twice."""
_GIT = ("git", "-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost")
_GUARD = (sys.executable, "-m", "guard", "-q", "snapshot")


class _Cost(NamedTuple):
    wall: float
    cpu: float


def rows(files: int = 100_000, firsts: int = 3, nexts: int = 7) -> Iterator[Row]:
    with scratch() as folder:
        project = folder / "project"
        _fill(project, files)
        environ = {**os.environ, "HOME": os.fspath(folder), "XDG_STATE_HOME": f"{folder}/state"}
        turns = [_first(project, folder / "state", environ) for _ in range(firsts)]
        yield _row(f"first snapshot of {files:,} files", 1, "git add -A", turns)
        later = [
            (_run(("git", "status"), project, environ), _run(_GUARD, project, environ))
            for _ in range(nexts)
        ]
        yield _row(f"next snapshot of {files:,} files", 4, "git status", later)


def _fill(project: Path, files: int) -> None:
    made_up = random.Random(files)
    code = "".join(map(inspect.getsource, _CODE))
    for number in range(files):
        path = project / f"{number // _IN_A_FOLDER:04}" / f"file_{number}.txt"
        if number % _IN_A_FOLDER == 0:
            path.parent.mkdir(parents=True)
        begin = made_up.randrange(len(code) - _MOST_BYTES)
        path.write_text(code[begin : begin + made_up.randrange(_MOST_BYTES)])
    time.sleep(_REST_SECONDS)


def _first(project: Path, state: Path, environ: dict[str, str]) -> tuple[_Cost, _Cost]:
    """One turn of both, each from nothing."""
    for made_before in (project / ".git", state):
        shutil.rmtree(made_before, ignore_errors=True)
    _run((*_GIT, "init", "-q"), project, environ)
    added = _run((*_GIT, "add", "-A"), project, environ)
    _run((*_GIT, "commit", "-q", "-m", "all"), project, environ)
    return added, _run(_GUARD, project, environ)


def _run(argv: Sequence[str], cwd: Path, environ: dict[str, str]) -> _Cost:
    """How long a program takes, and the CPU time of it and those that it waited for."""
    begun = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=cwd, env=environ)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return _Cost(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime)


def _row(what: str, limit: float, beside: str, turns: Sequence[tuple[_Cost, _Cost]]) -> Row:
    theirs, ours = (
        _Cost(*map(statistics.median, zip(*costs, strict=True)))
        for costs in zip(*turns, strict=True)
    )
    detail = (
        f"{ours.wall:.2f} s beside {theirs.wall:.2f} s; "
        f"in CPU time {ours.cpu:.2f} s beside {theirs.cpu:.2f} s, {ours.cpu / theirs.cpu:.2f} ×"
    )
    return at_most(f"{what} beside `{beside}`", limit, ours.wall / theirs.wall, detail)
