"""The work trees that agents of a plan work in: a few of them, used for one task after another.

They lie beside the workspace, because nothing in it counts as work, and are used again, so that what is installed there stays.
Each has a lock, which guard holds while it prepares one and lends to the process that works in it: so a work tree is in use as
long as that process lives, whatever becomes of the guard that started it.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Literal

from guard import breaker
from guard.check import verdict
from guard.context.invocation import Invocation
from guard.core.base.fields import Frozen, Id, Instant, parse_document
from guard.core.base.paths import path_line
from guard.core.iteration.facts import Process
from guard.core.prove.settings import LOCK_FILES
from guard.core.snapshots.snapshot import Occasion
from guard.errors import GuardError, StoreUnavailable
from guard.git.run import read_users_config
from guard.iteration.current import CheckTerms
from guard.plan.submodules import fill_submodules, has_changes
from guard.plan.work_tree import SlotTree, slot_invocation, task_branch
from guard.snapshots.last_resort import NothingSaved, save
from guard.snapshots.safe_writer import PathRefused, SafeFolder, refusal
from guard.system.foreign_files import read_regular
from guard.system.private_files import Folder, close, try_lock

_BESIDE = ".slots"
_RECORD, _LOCK, _EXCLUDES = "slot.json", "slot.lock", "exclude"
_MOST_COPIED_BYTES = 64 * 1024 * 1024
_LIKE = "0" * 40
"""An id of the kind by which a file is compared with itself."""
_SLASHED = str.maketrans({sign: f"\\{sign}" for sign in "\\*?[]!# "})


WorkKind = Literal["developer", "auditor", "helper", "audit", "proof", "setup"]


class SlotWork(Frozen):
    """What the process is there for that works in a slot, or worked there last and was not taken in yet."""

    kind: WorkKind
    """`auditor` and `helper` are agents of the user's command; `audit` and `proof` are commands."""
    agent_id: Id
    task_id: Id | None
    stem: str
    """Where its files are: what it printed, and the document."""
    process: Process | None = None
    """Its process; None until it has been started, also if guard was killed between."""

    @property
    def log(self) -> Path:
        return Path(f"{self.stem}.log")

    @property
    def document(self) -> Path:
        return Path(f"{self.stem}.json")

    @property
    def prompt(self) -> Path:
        return Path(f"{self.stem}.prompt")


class SlotRecord(Frozen):
    """What guard has to know of a slot besides what git says."""

    is_reset: bool = True
    """Whether the work tree is whole; false while guard resets it, when what git says of it means nothing."""
    task_id: Id | None = None
    """The task that it was prepared for last."""
    setup_key: str | None = None
    """What the last set-up depended on."""
    copied: tuple[str, ...] = ()
    """The files that guard copied into it."""
    work: SlotWork | None = None
    agent_id: Id | None = None
    """The agent that worked in it last, which goes on here as long as the plan has it at work."""
    rest_until: Instant | None = None
    """When that agent goes on, if not at once."""
    feedback: str = ""
    """What the next prompt of that agent says of work that was refuted."""
    is_limited: bool = False
    """Whether it waits for the end of a usage limit, which stops all agents from being sent."""


@dataclass(frozen=True)
class Slot:
    """One of the work trees. The folder beside it has guard's own files about it."""

    number: int
    home: Path

    @property
    def path(self) -> Path:
        return self.home / f"slot-{self.number}"

    @property
    def folder(self) -> Path:
        return self.home / f"slot-{self.number}.d"

    @property
    def excludes(self) -> Path:
        """The file of patterns that keep copied files from being committed."""
        return self.folder / _EXCLUDES

    def record(self) -> SlotRecord:
        with Folder.make(self.folder) as folder:
            data = folder.read(_RECORD)
        try:
            return parse_document(SlotRecord, data) if data else SlotRecord(is_reset=False)
        except ValueError:
            # Without its record nothing is known of it: then it is saved whole, and reset.
            return SlotRecord(is_reset=False)

    def write(self, record: SlotRecord) -> None:
        with Folder.make(self.folder) as folder:
            folder.replace(_RECORD, record.model_dump_json().encode() + b"\n", durable=True)

    def acquire(self) -> int | None:
        """Return the lock of the slot as a descriptor; None while another process has it."""
        with Folder.make(self.folder) as folder:
            descriptor = folder.open_file(_LOCK, os.O_RDWR | os.O_CREAT)
        if try_lock(descriptor):
            return descriptor
        close(descriptor)
        return None

    @property
    def is_in_use(self) -> bool:
        descriptor = self.acquire()
        if descriptor is not None:
            close(descriptor)
        return descriptor is None


class Slots:
    """Finds, makes and prepares the slots of a workspace."""

    def __init__(self, guard: Invocation) -> None:
        self._guard = guard
        self._settings = guard.users_config.settings.plan
        guard.prepare_workspace()
        workspace = guard.workspace.path
        self.home = workspace.with_name(f"{workspace.name}{_BESIDE}")
        Folder.make(self.home).close()

    def slot(self, number: int) -> Slot:
        return Slot(number, self.home)

    def existing(self) -> list[Slot]:
        """Return the slots that were ever made, by number."""
        names = (path.name.removeprefix("slot-") for path in self.home.glob("slot-*.d"))
        return [self.slot(int(name[:-2])) for name in sorted(names, key=len) if name[:-2].isdigit()]

    def refuse_full_disk(self) -> None:
        """Raise StoreUnavailable if less of the disk is free than `plan.min_free_bytes`."""
        status = os.statvfs(self.home)
        free, floor = status.f_bavail * status.f_frsize, self._settings.min_free_bytes
        if free < floor:
            raise StoreUnavailable(
                f"only {free} bytes are free on the disk of {self.home}, and plan.min_free_bytes is {floor}",
                "free some space, or lower plan.min_free_bytes; then run the plan again",
            )

    def task_of(self, slot: Slot) -> str | None:
        """Return the task whose branch is checked out in the slot."""
        tree = SlotTree(self._guard, slot.path)
        if not tree.is_there:
            return None
        commit, branch = tree.head()
        prefix = task_branch("")
        own = commit is not None and branch is not None and branch.startswith(prefix)
        return branch.removeprefix(prefix) if own and branch is not None else None

    def prepare(self, slot: Slot, task_id: str | None, base: str) -> bool:
        """Check out the task's branch in the slot, made at `base` if there is none; return whether a set-up is due.

        The caller has the slot's lock. A slot that has the task already is left as it is: the work goes on there. Without a
        task `base` itself is checked out.
        """
        self.refuse_full_disk()
        tree = SlotTree(self._guard, slot.path)
        ref = task_branch(task_id) if task_id is not None else None
        record = slot.record()
        if not tree.is_there:
            tree.make(base)
            record = SlotRecord(is_reset=False)
            slot.write(record)
            self._reset(slot, tree, ref, base, saved=True)
        elif not record.is_reset or ref is None or self.task_of(slot) != task_id:
            saved = self._save(slot, tree, record)
            self._reset(slot, tree, ref, base, saved=saved)
        record = slot.record().model_copy(update={"task_id": task_id, "copied": self._copy(slot)})
        slot.write(record)
        return bool(self._settings.setup) and record.setup_key != self.setup_key(slot)

    def finish_setup(self, slot: Slot) -> None:
        """Record that the set-up succeeded, so that it is not run again before it changes."""
        slot.write(slot.record().model_copy(update={"setup_key": self.setup_key(slot)}))

    def setup_key(self, slot: Slot) -> str:
        """Return a digest of what the set-up depends on: its command, and the files that decide."""
        digest = sha256(self._settings.setup.encode(errors="surrogateescape"))
        globs = self._settings.setup_inputs or LOCK_FILES
        tree = SlotTree(self._guard, slot.path)
        for path, oid in tree.files():
            if any(fnmatch(path, glob) or fnmatch(os.path.basename(path), glob) for glob in globs):
                digest.update(f"\0{path}\0{oid}".encode(errors="surrogateescape"))
        return digest.hexdigest()

    def leave(self, slot: Slot) -> None:
        """Leave the branch of a task that has passed, so that it can be landed and deleted."""
        with suppress(GuardError):
            SlotTree(self._guard, slot.path).detach()

    def bring_home(self, slot: Slot, task_id: str) -> None:
        """Have the task's branch follow an agent that went on from it on another branch."""
        tree = SlotTree(self._guard, slot.path)
        if tree.is_there and tree.bring_home(task_branch(task_id)):
            self._guard.output.warn(
                f"the agent of task {task_id} left its branch: guard/task/{task_id} has followed it"
            )

    def reset_breaker(self, slot: Slot) -> None:
        """Close the slot's breaker for a new agent: what an earlier one did says nothing about it."""
        there = slot_invocation(self._guard, slot.path)
        if breaker.load(there.store, there.worktree_key).state != "closed":
            breaker.reset(there, "a new agent begins here")

    def _save(self, slot: Slot, tree: SlotTree, record: SlotRecord) -> bool:
        """Commit what the last agent left to its task's branch; return whether there was anything to save."""
        there = slot_invocation(self._guard, slot.path)
        if has_changes(self._guard, slot.path):
            # A rescue commits nothing in submodules.
            self._take_snapshot(there)
        if tree.is_clean(self._excludes_if_any(slot)) and record.is_reset:
            return False
        task = self.task_of(slot) if record.is_reset else None
        if task is not None:
            try:
                done = verdict.rescue(there, _RESCUE, dry=False, on_branch=False)
                if done.commits:
                    count = len(done.commits)
                    self._guard.output.warn(
                        f"slot {slot.number}: {count} commits saved what an agent of task {task} left"
                    )
                return True
            except GuardError as error:
                self._guard.output.warn(f"slot {slot.number}: {error.message}")
        self._take_snapshot(there)
        return True

    def _take_snapshot(self, there: Invocation) -> None:
        try:
            save(there, Occasion("rescue", self._guard.clock.now()))
        except NothingSaved as error:
            raise StoreUnavailable(
                f"what is in {there.repository.root} cannot be saved: {error}",
                "make room, or save the files by hand; nothing was deleted",
            ) from None

    def _reset(
        self, slot: Slot, tree: SlotTree, ref: str | None, base: str, *, saved: bool
    ) -> None:
        record = slot.record()
        slot.write(record.model_copy(update={"is_reset": False}))
        tree.reset(ref, base)
        strays = tree.strays(self._excludes_if_any(slot))
        if strays and not saved:
            self._save(slot, tree, SlotRecord(is_reset=False))
        tree.delete(strays)
        fill_submodules(self._guard, slot.path)
        slot.write(record.model_copy(update={"is_reset": True}))

    def _excludes_if_any(self, slot: Slot) -> Path | None:
        return slot.excludes if slot.excludes.exists() else None

    def _copy(self, slot: Slot) -> tuple[str, ...]:
        """Copy the files of `plan.copy` that git does not track in the slot; return their paths."""
        root = self._guard.repository.root
        tracked = {path for path, _ in SlotTree(self._guard, slot.path).files()}
        paths = [path for path in _matching(root, self._settings.copy) if path not in tracked]
        copied = [path for path in paths if self._copy_file(root, slot, path)]
        if copied or slot.excludes.exists():
            own = "".join(f"/{path.translate(_SLASHED)}\n" for path in copied)
            with Folder.make(slot.folder) as folder:
                text = self._users_excludes() + own
                folder.replace(_EXCLUDES, text.encode(errors="surrogateescape"), locked=False)
        return tuple(copied)

    def _copy_file(self, root: Path, slot: Slot, path: str) -> bool:
        """Copy a file into the slot, through no link that an agent made there; return whether it is there."""
        name, target = os.fsencode(path), SafeFolder(slot.path)
        try:
            data = read_regular(root / path, _MOST_COPIED_BYTES)
            bits = stat.S_IMODE(os.stat(root / path).st_mode)
            target.put(name, bits, [data], target.look(name, _LIKE))
        except (OSError, PathRefused) as error:
            said = f"{path_line(name)} is not copied: {refusal(error)}"
            self._guard.output.warn(f"slot {slot.number}: {said}")
            return False
        finally:
            target.close()
        return True

    def _users_excludes(self) -> str:
        environ = self._guard.environ
        given = read_users_config("core.excludesFile", environ, "path")
        home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", ""), ".config")
        try:
            text = Path(given or os.path.join(home, "git", "ignore")).read_text(
                errors="surrogateescape"
            )
        except OSError:
            return ""
        return text if text.endswith("\n") or not text else f"{text}\n"


_RESCUE = CheckTerms(probe=False, prove=False, flags={"rescue.planner": "rules"})


def _matching(root: Path, globs: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in globs:
        for name in sorted(glob(pattern, root_dir=root, recursive=True, include_hidden=True)):
            path = root / name
            inside = Path(os.path.realpath(path)).is_relative_to(root)
            if inside and path.is_file() and path.stat().st_size <= _MOST_COPIED_BYTES:
                found[os.path.normpath(name)] = None
    return list(found)


@contextmanager
def hold(slot: Slot) -> Iterator[int | None]:
    """Hold the slot's lock inside; None if another process has it."""
    descriptor = slot.acquire()
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            close(descriptor)
