"""Keep what the agent prints, and when guard last watched, for the next guard if this one dies.

Both are in the files of `output.d` in the workspace: their content is the output, and their time is that of guard's last look.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from guard.context.invocation import Invocation
from guard.core.base.first_use import dataclass
from guard.core.classify import Classification, make_reader
from guard.errors import GuardError
from guard.iteration.current import Iteration, has_agent_ended, is_other_guard_alive, last_check
from guard.system.private_files import Folder

if TYPE_CHECKING:
    from guard.core.classify.stream_reader import OutputReader

FOLDER = "output.d"
_CHUNK = 1024 * 1024
_MOST_ITERATIONS = 2000


@dataclass(frozen=True)
class KeptOutput:
    """The files of one iteration; the newest are kept, as many as `run.keep_output_mb` has room for.

    The folder is opened without following links: the agent can replace it, and nothing outside may be touched.
    """

    workspace: Path
    name: str
    most_bytes: int = 0
    """How much of earlier iterations is kept when this one begins."""

    @classmethod
    def of(cls, guard: Invocation, iteration: Iteration) -> "KeptOutput":
        return cls.named(guard, iteration.run, iteration.number)

    @classmethod
    def named(cls, guard: Invocation, run: str, number: int) -> "KeptOutput":
        room = int(guard.users_config.settings.run.keep_output_mb * 1_000_000)
        return cls(guard.workspace.path, f"{run}.{number:06d}", room)

    @contextmanager
    def _open_folder(self, *, create: bool = False) -> Iterator[Folder | None]:
        with ExitStack() as opened:
            workspace = Folder.open(self.workspace)
            folder = None
            if workspace is not None:
                folder = opened.enter_context(workspace).child(FOLDER, create=create)
            yield opened.enter_context(folder) if folder is not None else None

    @contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open the files for stdout and stderr; where that fails, the agent runs without them."""
        files = self._create()
        try:
            yield files
        finally:
            for file in files:
                # What did not fit is written once more at the end, and fails once more.
                with suppress(OSError):
                    file.close()

    def _create(self) -> tuple[BinaryIO, BinaryIO]:
        with suppress(OSError, GuardError), self._open_folder(create=True) as folder:
            if folder is not None:
                with suppress(OSError):
                    _delete_oldest(folder, self.most_bytes)
                return _create(folder, self._file("stdout")), _create(folder, self._file("stderr"))
        return open(os.devnull, "wb"), open(os.devnull, "wb")

    def keep_prompt(self, prompt: bytes) -> None:
        with suppress(OSError, GuardError), self._open_folder(create=True) as folder:
            if folder is not None:
                with _create(folder, self._file("prompt")) as file:
                    file.write(prompt)

    def read(self, agent: str | None) -> "OutputReader | None":
        if not self.is_kept():
            return None
        words = make_reader(agent)
        for data in self.chunks("stdout"):
            words.feed(data)
        for data in self.chunks("stderr"):
            words.feed_error(data)
        return words

    def chunks(self, stream: str) -> Iterator[bytes]:
        with suppress(OSError, GuardError), self._open_folder() as folder:
            if folder is not None:
                with open(folder.open_file(self._file(stream)), "rb") as file:
                    while data := file.read(_CHUNK):
                        yield data

    def touch(self) -> None:
        # The time of the file says that guard is watching, whatever becomes of guard.
        with suppress(OSError, GuardError), self._open_folder() as folder:
            if folder is not None:
                name = self._file("stdout")
                os.utime(name, dir_fd=folder.descriptor, follow_symlinks=False)

    def is_kept(self) -> bool:
        """Tell whether guard has watched over this iteration, and its files are not yet deleted."""
        return self._time() is not None

    def watched_until(self) -> float:
        return self._time() or 0.0

    def _time(self) -> float | None:
        with suppress(OSError, GuardError), self._open_folder() as folder:
            if folder is not None:
                name, place = self._file("stdout"), folder.descriptor
                return os.stat(name, dir_fd=place, follow_symlinks=False).st_mtime
        return None

    def _file(self, stream: str) -> str:
        return f"{self.name}.{stream}"


def _delete_oldest(folder: Folder, most_bytes: int) -> None:
    """Delete the files of the oldest iterations until the rest fits."""
    sizes: dict[str, int] = {}
    times: dict[str, float] = {}
    for name in folder.names():
        found = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
        iteration = name.rpartition(".")[0]
        sizes[iteration] = sizes.get(iteration, 0) + found.st_size
        times[iteration] = max(times.get(iteration, 0.0), found.st_mtime)
    newest_first = sorted(times, key=lambda name: times[name], reverse=True)
    total, doomed = 0, set[str]()
    for number, name in enumerate(newest_first):
        total += sizes[name]
        # The newest is what another guard may still judge by.
        if number and (total > most_bytes or number >= _MOST_ITERATIONS):
            doomed.add(name)
    for name in folder.names():
        if name.rpartition(".")[0] in doomed:
            folder.remove(name)


def classify_kept_output(guard: Invocation, iteration: Iteration) -> Classification | None:
    """Return what the output means of an iteration that no guard watches over any more; None if one does, or none did."""
    opened = iteration.opened
    if (
        opened is None
        or opened.supervisor is None
        or is_other_guard_alive(guard, opened.supervisor)
    ):
        return None
    last = last_check(guard, iteration)
    if last is not None and last.output is not None:
        # The guard that saw the agent end knew more than the output alone can tell.
        return Classification.model_validate(last.output, strict=False)
    words = KeptOutput.of(guard, iteration).read(opened.agent)
    if words is None:
        return None
    # No guard saw how the process ended.
    found = words.finish(None, guard.clock.now().astimezone())
    # The helpers of one that lives are open, not killed.
    return None if found.killed and not has_agent_ended(guard, iteration) else found


def helpers_in_kept_output(guard: Invocation, iteration: Iteration) -> tuple[str, ...]:
    # Those that the output names without an end.
    agent = iteration.opened.agent if iteration.opened else None
    words = KeptOutput.of(guard, iteration).read(agent)
    return words.team.members if words is not None and words.team is not None else ()


def unwatched_since(guard: Invocation, iteration: Iteration) -> float | None:
    """When the guard that watched over an iteration was gone; None if none did, or one does.

    Also None if it left with the verdict that something goes on: then that is what changes files.
    """
    opened, kept = iteration.opened, KeptOutput.of(guard, iteration)
    if opened is not None and is_other_guard_alive(guard, opened.supervisor):
        return None
    if not kept.is_kept():
        return None if opened is None or opened.supervisor is None else 0.0
    last = last_check(guard, iteration)
    return None if last is not None and last.left_open else kept.watched_until()


def _create(folder: Folder, name: str) -> BinaryIO:
    try:
        return open(folder.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")
    except (OSError, GuardError):
        return open(os.devnull, "wb")
