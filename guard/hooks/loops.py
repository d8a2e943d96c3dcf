"""Follow the journals of the sessions that work on an iteration, and tell what their agents repeat."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from guard.context.config import state_home
from guard.context.invocation import Invocation
from guard.core.tool_calls.agent_loop import LoopFound
from guard.errors import GuardError
from guard.hooks import spool
from guard.hooks.agent.journal import FOLDER, OLD, SUFFIX, journal_name
from guard.iteration.current import Iteration
from guard.system.private_files import Folder, close, read_from

if TYPE_CHECKING:
    from guard.core.hooks.session_loops import SessionLoops

_DAY = 86400.0
_MOST_BYTES = 4 * 1024 * 1024


class HookLoops:
    """Reads what the journals have, look by look; nothing is written, but files of long ago are deleted."""

    def __init__(self, guard: Invocation, iteration: Iteration) -> None:
        self._guard = guard
        opened, begun = iteration.opened, iteration.baseline.at
        self._mark = iteration.mark if opened is not None and opened.supervisor else ""
        """The mark of an agent that guard itself has started: calls without it are another's."""
        self._since = begun.timestamp() if begun is not None else 0.0
        self._journals: dict[str, _Journal] = {}
        self._found: dict[str, SessionLoops] = {}
        self._named: str | None = None

    @property
    def current(self) -> LoopFound | None:
        return _most(found.current for found in self._counted())

    @property
    def worst(self) -> LoopFound | None:
        return _most(found.worst for found in self._counted())

    def clear(self) -> None:
        """Forget what is repeated now, because the agent waits for something that is at work."""
        for found in self._found.values():
            found.clear()

    def look(self, session: str | None) -> None:
        """Read what is new; if the session is known, only its calls count."""
        self._named = journal_name(session) if session is not None else None
        with suppress(OSError, GuardError), self._open() as folder:
            for name in [name for name in folder.names() if name.endswith(SUFFIX)]:
                journal = self._journals.setdefault(name, _Journal(name))
                for entry in journal.read_news(folder):
                    if self._is_counted(entry):
                        self._loops_of(name).take(entry)

    def _loops_of(self, name: str) -> "SessionLoops":
        # Most sessions have no journal, and then this need not be loaded.
        from guard.core.hooks.session_loops import SessionLoops

        return self._found.setdefault(name, SessionLoops())

    def _open(self) -> Folder:
        root = str(self._guard.repository.root)
        path = state_home(self._guard.environ) / FOLDER / spool.work_tree_key(root)
        folder = Folder.open(path)
        if folder is None:
            raise FileNotFoundError(path)
        return folder

    def _counted(self) -> "list[SessionLoops]":
        named = self._found.get(self._named) if self._named is not None else None
        return [named] if named is not None else list(self._found.values())

    def _is_counted(self, entry: Mapping[str, Any]) -> bool:
        seconds = entry.get("seconds")
        if not isinstance(seconds, int | float) or seconds < self._since:
            return False
        return not self._mark or entry.get("mark") == self._mark


class _Journal:
    """One file that grows, and becomes the old one when it is long."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._file: int | None = None
        """The file that was read, by its inode."""
        self._reached = 0

    def read_news(self, folder: Folder) -> Iterator[Mapping[str, Any]]:
        status = os.stat(self._name, dir_fd=folder.descriptor, follow_symlinks=False)
        if time.time() - status.st_mtime > _DAY:
            folder.remove(self._name)
            folder.remove(self._name.removesuffix(SUFFIX) + OLD)
            return
        if status.st_ino != self._file:
            yield from self._read_old(folder)
            self._file, self._reached = status.st_ino, 0
        if status.st_size > self._reached:
            yield from self._read(folder, self._name)

    def _read_old(self, folder: Folder) -> Iterator[Mapping[str, Any]]:
        # The rest of the file that was read, or all of it if none was.
        name = self._name.removesuffix(SUFFIX) + OLD
        with suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
            self._reached = self._reached if status.st_ino == self._file else 0
            yield from self._read(folder, name)

    def _read(self, folder: Folder, name: str) -> Iterator[Mapping[str, Any]]:
        descriptor = folder.open_file(name)
        try:
            data, _ = read_from(descriptor, self._reached, _MOST_BYTES)
        finally:
            close(descriptor)
        whole = data[: data.rfind(b"\n") + 1]
        self._reached += len(whole)
        for line in whole.splitlines():
            with suppress(ValueError, RecursionError):
                entry = json.loads(line)
                if isinstance(entry, dict):
                    yield entry


def find_hooked_loop(guard: Invocation, iteration: Iteration) -> LoopFound | None:
    """Return what the hooks say that the agent of an iteration repeated most."""
    loops = HookLoops(guard, iteration)
    loops.look(iteration.opened.session if iteration.opened is not None else None)
    return loops.worst


def _most(found: Iterator[LoopFound | None]) -> LoopFound | None:
    known = [loop for loop in found if loop is not None]
    return max(known, key=lambda loop: loop.calls, default=None)
