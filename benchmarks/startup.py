"""Whole processes, in CPU time."""

import os
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.history import working
from benchmarks.measure import Row, at_most, cpu_seconds, scratch

ROUNDS = 9
_MODEL = """\
import click
from pydantic import BaseModel
class Model(BaseModel):
    name: str
Model(name="x")
"""
_COUNT = """\
import subprocess
subprocess.run(["git", "rev-list", "--count", "HEAD"], stdout=subprocess.DEVNULL)
"""


def rows(rounds: int = ROUNDS) -> Iterator[Row]:
    python = sys.executable
    bare = cpu_seconds([python, "-c", "import click"], rounds)
    helped = cpu_seconds([python, "-m", "guard", "--help"], rounds)
    detail = f"{helped * 1e3:.0f} ms beside {bare * 1e3:.0f} ms"
    yield at_most("guard --help beside importing click", 1.5, helped / bare, detail)
    with scratch() as folder:
        working(folder / "workspace", 1000)
        words = ["--workspace", str(folder / "workspace"), "agent", "list"]
        model = cpu_seconds([python, "-c", _MODEL], rounds)
        listed = cpu_seconds([python, "-m", "guard", *words], rounds, cwd=folder)
    detail = f"{listed * 1e3:.0f} ms beside {model * 1e3:.0f} ms"
    yield at_most("guard agent list beside click and one pydantic model", 2, listed / model, detail)
    yield _check(python, rounds)


def _check(python: str, rounds: int) -> Row:
    """The hot path of a loop: the agent has committed, and guard says so."""
    with scratch() as folder:
        environ = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        project = folder / "project"
        project.mkdir()

        def call(*argv: str) -> None:
            subprocess.run(argv, cwd=project, env=environ, check=True, capture_output=True)

        call("git", "init", "-q")
        for name in ("user.name", "user.email"):
            call("git", "config", name, "benchmark@localhost")
        call("git", "commit", "-q", "--allow-empty", "-m", "before")
        call(python, "-m", "guard", "baseline")
        (project / "new.txt").write_text("new\n")
        call("git", "add", "new.txt")
        call("git", "commit", "-q", "-m", "after")
        counted = [python, "-c", _MODEL + _COUNT]
        bare = cpu_seconds(counted, rounds, cwd=project, environ=environ)
        words = [python, "-m", "guard", "check"]
        checked = cpu_seconds(words, rounds, cwd=project, environ=environ)
    detail = f"{checked * 1e3:.0f} ms beside {bare * 1e3:.0f} ms"
    name = "guard check with a new commit beside click, one pydantic model and git rev-list"
    return at_most(name, 2, checked / bare, detail)
