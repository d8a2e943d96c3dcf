"""Whole processes in CPU time, beside a Python that only imports what every command of this kind needs.

They are started in turns, and the least of several counts: a busy moment of the machine only adds to it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Row, at_most, environment, least_cpu_seconds, program, scratch

ROUNDS = 15
_CLICK = "import click"
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
FLOORS = {
    "importing click": _CLICK,
    "click and one pydantic model": _MODEL,
    "click, one pydantic model and git rev-list": _MODEL + _COUNT,
}


class Call(NamedTuple):
    """A command, and how many times the floor its CPU time may be."""

    words: str
    most: float
    floor: str


_LEAST, _STATE, _GIT = FLOORS
CALLS = {
    "guard --version": Call("--version", 1.6, _LEAST),
    "guard --help": Call("--help", 1.4, _LEAST),
    "guard where": Call("where", 1.6, _LEAST),
    "guard completion bash": Call("completion bash", 1.6, _LEAST),
    "guard breaker allow": Call("breaker allow", 1.5, _STATE),
    "guard agent update": Call("agent update --task t --agent a --status running", 1.5, _STATE),
    "guard team spawn": Call("team spawn --team x --member m", 1.5, _STATE),
    "guard plan ready": Call("plan ready u", 1.5, _STATE),
    "guard event": Call("event compaction tokens_remaining_percent=50", 1.5, _STATE),
    "guard baseline": Call("baseline", 1.6, _GIT),
    "guard check with a new commit": Call("check --no-probe --no-wait", 1.5, _GIT),
}


def rows(rounds: int = ROUNDS) -> Iterator[Row]:
    with scratch() as folder:
        environ = environment(folder)
        places = {name: _worked(folder / name.replace(" ", "-"), environ) for name in CALLS}
        calls = {
            **{name: ([sys.executable, "-c", text], folder) for name, text in FLOORS.items()},
            **{
                name: ([program("guard"), *call.words.split()], places[name])
                for name, call in CALLS.items()
            },
        }
        calls[_GIT] = (calls[_GIT][0], places["guard baseline"])
        seconds = least_cpu_seconds(calls, rounds, environ)
    for name, call in CALLS.items():
        detail = f"{seconds[name] * 1e3:.0f} ms beside {seconds[call.floor] * 1e3:.0f} ms"
        yield at_most(
            f"{name} beside {call.floor}", call.most, seconds[name] / seconds[call.floor], detail
        )


def _worked(project: Path, environ: Mapping[str, str]) -> Path:
    """A repository where an iteration is open, the agent has committed, and each command has something to do."""
    project.mkdir()

    def call(*argv: str) -> None:
        subprocess.run(argv, cwd=project, env=environ, check=True, capture_output=True)

    call("git", "init", "-q")
    for name in ("user.name", "user.email"):
        call("git", "config", name, "benchmark@localhost")
    call("git", "commit", "-q", "--allow-empty", "-m", "before")
    guard = program("guard")
    call(guard, "baseline")
    plan = {"tasks": [{"id": name, "title": "One of two"} for name in ("t", "u")]}
    (project / "plan.json").write_text(json.dumps(plan))
    for words in (
        "plan load plan.json",
        "plan dispatch u --agent b",
        "agent spawn --task t --agent a",
    ):
        call(guard, *words.split())
    os.remove(project / "plan.json")
    (project / "new.txt").write_text("new\n")
    call("git", "add", "new.txt")
    call("git", "commit", "-q", "-m", "after")
    return project
