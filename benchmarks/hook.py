"""Observing hooks, as an agent's program and as git calls them: whole processes, beside Python that does nothing.

They are started in turns, so that a busy moment of the machine hits all alike.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.measure import Row, at_most, scratch

ROUNDS = 101
_GIT_ROUNDS = 41
_OBSERVING = ("post-commit", "post-rewrite")
_DOCUMENT = {
    "session_id": "00000001-0000-4000-8000-000000000001",
    "hook_event_name": "PostToolUse",
    "permission_mode": "default",
    "agent_id": "a0000000000000001",
    "agent_type": "general-purpose",
    "tool_name": "Bash",
    "tool_input": {"command": "make", "description": "Build it"},
    "tool_response": {"stdout": "a line of output\n" * 200, "stderr": "", "interrupted": False},
}


def rows(rounds: int = ROUNDS) -> Iterator[Row]:
    yield from _of_agents(rounds)
    yield _of_git(min(rounds, _GIT_ROUNDS))


def _of_agents(rounds: int) -> Iterator[Row]:
    with scratch() as folder:
        (folder / "project" / ".git").mkdir(parents=True)
        source = folder / "document.json"
        source.write_text(json.dumps({**_DOCUMENT, "cwd": str(folder / "project")}))
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        environ = {**kept, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        pair = [sys.executable, "-c", "pass"], [_script(), "hook", "claude", "PostToolUse"]
        for command in pair:
            _cpu(command, source, environ)  # Once, so that all is compiled.
        times = [[_cpu(command, source, environ) for command in pair] for _ in range(rounds)]
        assert list(folder.glob("state/guard/spool.d/*/alive-*.json"))
    bare, hook = (statistics.median(one[n] for one in times) for n in (0, 1))
    detail = f"{hook * 1e3:.1f} ms beside {bare * 1e3:.1f} ms of CPU time"
    yield at_most("an observing hook beside `python -c pass`", 1.8, hook / bare, detail)


def _of_git(rounds: int) -> Row:
    """A commit in a repository with the observing hooks, beside one in a repository without."""
    with scratch() as folder:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        environ = {**kept, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        nothing = folder / "nothing"
        nothing.write_bytes(b"")
        places = [_repository(folder / name, environ) for name in ("bare", "hooked")]
        options = [word for name in _OBSERVING for word in ("--hook", name)]
        subprocess.run(
            [_script(), "--repo", places[1], "install", "git", *options],
            env=environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        commit = ("commit", "-q", "--allow-empty", "-m", "x")
        calls: list[list[str]] = [[sys.executable, "-c", "pass"]]
        calls += [["git", "-C", str(place), *commit] for place in places]
        for call in calls:
            _cpu(call, nothing, environ)
        times = [[_cpu(call, nothing, environ) for call in calls] for _ in range(rounds)]
        assert len(list(folder.glob("state/guard/commits.d/*/*.json"))) == rounds + 1
    python, bare, hooked = (statistics.median(one[n] for one in times) for n in range(3))
    detail = f"{hooked * 1e3:.1f} ms beside {bare * 1e3:.1f} ms of CPU time without them"
    what = "what the observing hooks add to a commit, beside `python -c pass`"
    return at_most(what, 5, (hooked - bare) / python, detail)


def _repository(folder: Path, environ: Mapping[str, str]) -> Path:
    for words in (
        ("init", "-q", str(folder)),
        ("-C", str(folder), "config", "user.name", "A"),
        ("-C", str(folder), "config", "user.email", "a@example.com"),
        ("-C", str(folder), "config", "gc.auto", "0"),
    ):
        subprocess.run(["git", *words], env=environ, check=True)
    return folder


def _script() -> str:
    """The program that `pip install` made beside this interpreter."""
    found = shutil.which("guard", path=os.path.dirname(sys.executable))
    assert found is not None, "guard is not installed beside this interpreter"
    return found


def _cpu(command: Sequence[str], source: Path, environ: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with source.open("rb") as into:
        subprocess.run(command, stdin=into, env=environ, cwd=source.parent, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
