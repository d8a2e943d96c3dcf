"""Start processes in slots, tell whether they have ended, and read what they left, also those of a guard that was killed."""

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from guard.context.invocation import EXCLUDES, Invocation
from guard.context.lease import find_process
from guard.core.base.fields import parse_document
from guard.core.check.report import CheckReport
from guard.errors import StoreUnavailable
from guard.plan.slots import Slot, Slots, SlotWork
from guard.system.foreign_files import read_regular
from guard.system.private_files import Folder
from guard.system.process_identity import is_alive
from guard.system.processes import ForkedProcess, fork, may_fork, start
from guard.system.programs import own_guard
from guard.system.signals import defer_signals

_MOST_DOCUMENT = 64 * 1024 * 1024
_MOST_TAIL = 16_384
_TAIL_LINES = 40
_OF_ANOTHER_AGENT = ("GUARD_TASK_ID", "GUARD_AGENT_ID", "GUARD_AGENT_INCARNATION")
_COMMAND = '/bin/sh -c "$1"; code=$?; echo "$code" > "$2"'
"""Runs the user's command, and keeps its exit code where the next guard finds it, with no other program."""


Child = subprocess.Popen[bytes] | ForkedProcess


@dataclass(frozen=True)
class GuardAside:
    """A guard at work beside the agents, and where its document goes."""

    child: Child
    document: Path

    @property
    def has_ended(self) -> bool:
        return self.child.poll() is not None


class Workers:
    """The processes in the slots of a workspace. Those that this guard started are its children."""

    def __init__(self, guard: Invocation, slots: Slots) -> None:
        self._guard = guard
        self._children: dict[int, Child] = {}
        self._output = slots.home / "output"
        Folder.make(self._output).close()

    def new_work(self, work: SlotWork) -> SlotWork:
        """Return the work with a name for its files that no other has."""
        stem = f"{work.task_id or 'plan'}-{work.agent_id}-{work.kind}"
        number = 1
        while (self._output / f"{stem}-{number}.log").exists():
            number += 1
        return work.model_copy(update={"stem": os.fspath(self._output / f"{stem}-{number}")})

    def start_guard(self, slot: Slot, lock: int, work: SlotWork, words: Sequence[str]) -> None:
        """Start guard in the slot; its document goes to the work's file."""
        self._start(slot, lock, work, self._guard_starter(slot.path, words), work.document)

    def start_aside(self, name: str, words: Sequence[str]) -> "GuardAside":
        """Start guard in the project itself, beside the agents."""
        root = self._guard.repository.root
        document, log = self._output / f"{name}.json", self._output / f"{name}.log"
        with open(log, "ab") as errors, open(document, "wb") as out, defer_signals():
            streams = {"stdout": out.fileno(), "stderr": errors.fileno()}
            starts = self._guard_starter(root, words)
            child = starts(environ=self._guard.environ, cwd=root, lends=(), **streams)
        return GuardAside(child, document)

    def _guard_starter(self, root: Path, words: Sequence[str]) -> Callable[..., "Child"]:
        place = self._guard.workspace.name
        given = ["--repo", os.fspath(root), "--workspace", place]
        if self._guard.config_file is not None:
            given += ["--config", os.path.abspath(self._guard.config_file)]
        if may_fork():
            return partial(_fork_guard, ["guard", *given, *words])
        return partial(start, own_guard(*given, *words), stdin=subprocess.DEVNULL, chosen=True)

    def start_command(self, slot: Slot, lock: int, work: SlotWork, command: str) -> None:
        """Start a command of the user's by `sh -c` in the slot; its exit code goes to the work's file."""
        argv = ["/bin/sh", "-c", _COMMAND, "sh", command, os.fspath(work.document)]
        starts = partial(start, argv, stdin=subprocess.DEVNULL, chosen=True)
        self._start(slot, lock, work, starts, work.log)

    def _start(
        self,
        slot: Slot,
        lock: int,
        work: SlotWork,
        starts: Callable[..., "Child"],
        printed: Path,
    ) -> None:
        record = slot.record()
        news = {"work": work, "agent_id": work.agent_id, "rest_until": None, "is_limited": False}
        slot.write(record.model_copy(update=news))
        variables = self._variables(slot, work)
        try:
            with open(work.log, "ab") as log, open(printed, "ab") as out, defer_signals():
                streams = {"stdout": out.fileno(), "stderr": log.fileno()}
                child = starts(environ=variables, cwd=slot.path, lends=(lock,), **streams)
                self._children[slot.number] = child
        except OSError as error:
            raise StoreUnavailable(
                f"nothing can be started in {slot.path}: {error.strerror}", "run the plan again"
            ) from None
        started = work.model_copy(update={"process": find_process(child.pid)})
        slot.write(record.model_copy(update=news | {"work": started}))

    def _variables(self, slot: Slot, work: SlotWork) -> Mapping[str, str]:
        environ = {
            name: value
            for name, value in self._guard.environ.items()
            if name not in _OF_ANOTHER_AGENT
        }
        environ |= {"GUARD_SLOT": str(slot.number), "GUARD_TASK": work.task_id or ""}
        if slot.excludes.exists():
            environ[EXCLUDES] = os.fspath(slot.excludes)
        return environ

    def has_ended(self, slot: Slot, work: SlotWork) -> bool:
        """Tell whether the process in the slot has ended, or its command has and only leaves a server behind."""
        if self.exit_code(slot) is not None:
            return True
        if work.kind in ("audit", "setup") and read_exit_code(work) is not None:
            return True
        return not slot.is_in_use

    def exit_code(self, slot: Slot) -> int | None:
        """Return the exit code of this guard's child in the slot; None if it lives, or another guard started it."""
        child = self._children.get(slot.number)
        return child.poll() if child is not None else None

    def forget(self, slot: Slot) -> None:
        """Forget the process in the slot, whose work was taken in."""
        self._children.pop(slot.number, None)
        slot.write(slot.record().model_copy(update={"work": None}))

    def end(self, work: SlotWork, number: int = signal.SIGTERM) -> None:
        """Ask the process in the slot to end; guard in it ends its agent and judges what it left."""
        process = work.process
        if process is None or not is_alive(process.pid, process.start):
            return
        with suppress(ProcessLookupError, PermissionError):
            if work.kind in ("audit", "setup"):
                os.killpg(process.pid, number)
            else:
                os.kill(process.pid, number)

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in self._children.values() if child.poll() is None]


def _fork_guard(argv: Sequence[str], **where: Any) -> ForkedProcess:
    # What the other process needs is loaded before, once for all of them.
    import guard.check.verdict_text
    import guard.claims.validate
    import guard.coordinator.ingest
    import guard.run.run  # noqa: F401

    def act() -> None:
        sys.argv = list(argv)
        runpy.run_module("guard", run_name="__main__", alter_sys=False)

    return fork(act, **where)


def read_check(work: SlotWork) -> CheckReport | None:
    """Return what `guard run` found; None if it came to nothing."""
    data = read_bytes(work.document)
    try:
        return parse_document(CheckReport, data) if data else None
    except ValueError:
        return None


def read_exit_code(work: SlotWork) -> int | None:
    """Return the exit code that a command of the user's left; None if it came to none."""
    data = read_bytes(work.document) or b""
    # A line that is not whole may be a digit short.
    return int(data) if data.endswith(b"\n") and data.strip().isdigit() else None


def read_tail(work: SlotWork) -> str:
    """Return the last lines that the process printed."""
    with suppress(OSError), open(work.log, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MOST_TAIL))
        text = file.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-_TAIL_LINES:]).strip()
    return ""


def read_bytes(path: Path) -> bytes | None:
    try:
        return read_regular(path, _MOST_DOCUMENT)
    except (OSError, ValueError):
        return None
