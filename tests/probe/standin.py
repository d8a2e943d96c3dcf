"""Stand-ins for agent CLIs: real programs that note how they were called and say what the test wants."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from guard.core.probe.answer import ProbeResult
from guard.probe import ask
from guard.probe.base import ProbeQuestion

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SESSION = "9e698464-80b9-4e96-82af-460aaa9dab46"
FORK = "2867fb3c-be67-4750-99df-5053ff08ad44"
OPENCODE_SESSION = "ses_e1d1463f4ffesZ0nuLTfHxAUzu"

_HEAD = """#!{python} -S
import json, os, re, sys, time
given = "" if sys.stdin is None else sys.stdin.read()
with open({log!r}, "a") as file:
    called = dict(argv=sys.argv[1:], environ=dict(os.environ), cwd=os.getcwd(), stdin=given)
    file.write(json.dumps(called) + "\\n")
times = sum(1 for _ in open({log!r}))
nonce = re.search("exactly ([0-9a-f]{{16}})", given + " ".join(sys.argv))[1]
def document(status="complete", **fields):
    return dict(nonce=nonce, status=status, **fields)
def answer(status="complete", **fields):
    return json.dumps(document(status, **fields))
def line(**event):
    print(json.dumps(event))
"""


@dataclass(frozen=True)
class StandIn:
    """A program in a folder of the search path, and its notes."""

    program: Path
    log: Path

    @property
    def calls(self) -> list[dict[str, Any]]:
        """How it was called, each time."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    @property
    def called(self) -> dict[str, Any]:
        """How it was called, the only time."""
        (call,) = self.calls
        return call


def stand_in(folder: Path, name: str, body: str) -> StandIn:
    """Write a program of this name into `bin` of the folder; `body` is Python, run after it took its notes."""
    program, log = folder / "bin" / name, folder / f"{name}.calls"
    program.parent.mkdir(exist_ok=True)
    program.write_text(_HEAD.format(python=sys.executable, log=str(log)) + body + "\n")
    program.chmod(0o755)
    return StandIn(program, log)


def asked(
    folder: Path,
    agent: str,
    *,
    session: str | None = SESSION,
    time_limit: float = 120,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    command: str | None = None,
    model: str | None = None,
) -> ProbeResult:
    """Ask the stand-in of the folder."""
    work_tree = cwd or folder / "work"
    work_tree.mkdir(exist_ok=True)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return ask(
        ProbeQuestion(
            agent=agent,
            cwd=work_tree,
            time_limit=time_limit,
            environ={**os.environ, "PATH": path, **(environ or {})},
            now=NOW,
            session=session,
            command=command,
            model=model,
        )
    )
