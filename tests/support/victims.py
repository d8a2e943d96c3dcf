"""`python -m tests.support.victims`: forks one guard after another, and kills it in the middle if it is told to.

It has one thread and nothing else to do, so it may fork; and as whatever a killed guard leaves running becomes its child, it
can wait for that as well. Orders come as lines of JSON, answers go back likewise.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from guard.context.invocation import Invocation
from guard.git import run as call
from guard.landing.land import land
from guard.rescue import move_branch
from tests.support import ROOT, TIME_LIMIT, git, write
from tests.support.rescues import attempt_rescue, take_snapshot
from tests.support.reverts import rolled_back

_SUBREAPER = 36
_WRITES = (
    (move_branch, "run"),
    *((os, name) for name in ("link", "mkdir", "rename", "rmdir", "symlink", "unlink")),
)
Order = dict[str, Any]


class Victims:
    """The process, seen from a test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.victims"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def serve(self, what: str, root: Path, workspace: Path, **more: Any) -> Any:
        """Have something done; what came of it, or None if it was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"what": what, "root": str(root), "workspace": str(workspace), **more}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "it died"
        return json.loads(answer)

    def end(self) -> None:
        self._process.communicate(timeout=TIME_LIMIT)


def _main() -> None:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    for line in sys.stdin:
        order = json.loads(line)
        together = {"together": _all_at_once, "land together": _land_together}
        served = together.get(order["what"], _served)(order)
        sys.stdout.write(json.dumps(served) + "\n")
        sys.stdout.flush()


def _served(order: Order) -> Any:
    began = time.monotonic()
    child, said = _forked(lambda: _done(order))
    if order.get("after") is not None:
        time.sleep(order["after"])
        _kill(child, everything=order.get("everything", False))
    os.waitpid(child, 0)
    _wait_for_orphans()
    return {"said": _heard(said), "lasted": time.monotonic() - began}


def _all_at_once(order: Order) -> Any:
    """Many rescues, each of one path, while somebody rewrites files and commits."""
    writer, commits = _forked(lambda: _write_and_commit(Path(order["root"])))
    rescues = [
        _forked(partial(_done, {**order, "what": "rescue", "paths": [path]}))
        for path in order["paths"]
    ]
    for child, _said in [*rescues, (writer, commits)]:
        os.waitpid(child, 0)
    return {"said": [_heard(said) for _child, said in rescues], "commits": _heard(commits)}


def _land_together(order: Order) -> Any:
    """Several landings at once."""
    landings = [_forked(partial(_done, {**order, "what": "land"})) for _ in range(order["times"])]
    for child, _said in landings:
        os.waitpid(child, 0)
    return {"said": [_heard(said) for _child, said in landings]}


def _forked(work: Callable[[], Any]) -> tuple[int, int]:
    """A child at work, and where its answer can be read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(work, writing)
    os.close(writing)
    return child, reading


def _in_child(work: Callable[[], Any], writing: int) -> NoReturn:
    code = 1
    try:
        answer = json.dumps(work()).encode()
        with open(writing, "wb") as pipe:
            pipe.write(answer)
        code = 0
    finally:
        os._exit(code)


def _heard(reading: int) -> Any:
    with open(reading, "rb") as pipe:
        said = pipe.read()
    return json.loads(said) if said else None


def _done(order: Order) -> Any:
    if order.get("calls") is not None:
        _die_before_call(order["calls"], _WRITES if order["what"] in ("rollback", "land") else ())
    root, workspace = Path(order["root"]), Path(order["workspace"])
    if order["what"] == "rollback":
        return asdict(rolled_back(root, workspace, order["commits"]))
    if order["what"] == "land":
        guard = Invocation(
            repo=root, workspace_option=os.fspath(workspace), environ={**os.environ, **order["env"]}
        )
        return land(guard, None, order.get("target")).model_dump(mode="json")
    if order["what"] == "snapshot":
        return take_snapshot(root, workspace).model_dump(mode="json")
    return attempt_rescue(root, workspace, order["paths"]).model_dump(mode="json")


def _die_before_call(number: int, also: Sequence[tuple[Any, str]] = ()) -> None:
    """End at once instead of calling git, or one of the others, for the n-th time."""
    left = [number]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def calling(*words: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*words, **options)

        return calling

    for module, name in ((call, "run"), (call, "feed"), *also):
        setattr(module, name, counted(getattr(module, name)))


def _write_and_commit(root: Path) -> list[str]:
    """The ids of the commits that were made; one that another git was in the way of is left out."""
    made = []
    for number in range(24):
        write(root / "rewritten.txt", f"{number}\n" * 2000)
        if number % 3 == 2:
            with suppress(subprocess.CalledProcessError):
                git(root, "add", "rewritten.txt")
                git(root, "commit", "-q", "-m", f"Rewrite {number}", "--", "rewritten.txt")
                made.append(git(root, "log", "-1", "--format=%H", "--grep=Rewrite").strip())
        time.sleep(0.02)
    return made


def _kill(child: int, *, everything: bool) -> None:
    """By itself, as by a person; or with all that it started, as when the machine stops."""
    victims = [child]
    if everything:
        os.kill(child, signal.SIGSTOP)
        victims = [child, *_below(child)]
    for process in victims:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _below(process: int) -> list[int]:
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    children = [int(word) for word in listed.split()]
    return [*children, *(one for child in children for one in _below(child))]


def _wait_for_orphans() -> None:
    with suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    _main()
