"""Run the cells of a proof: the tree of each, on a clean checkout, or a result that is known already."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import time

from pydantic import TypeAdapter

from guard.core.base.paths import path_line
from guard.core.base.text import escape, plural
from guard.core.prove.judge_work import Need
from guard.core.prove.outcome import CellName, CellRun
from guard.core.prove.project_tables import CannotGraft
from guard.core.prove.report import Cell, add_run
from guard.core.prove.settings import LOCK_FILES, ProveCheck, ProveSettings
from guard.core.prove.trail import is_program
from guard.errors import GuardError
from guard.prove.checkout import Checkout, Checkouts, FileStamp, SetUp
from guard.prove.execute import Order, execute
from guard.prove.share import Sharing
from guard.prove.tree_diff import TreeDiff
from guard.prove.trees import parents_of
from guard.system.clock import Deadline
from guard.system.private_files import Folder

_FORMAT = b"3"
_GREEN_SECONDS = 7 * 86400.0
_RED_SECONDS = 3600.0
"""How long a result counts: what made a run red may be mended outside the tree, with nothing to see it by."""
_MOST_KEPT = 500
_MOST_WRITTEN = 20
_DOWN_SECONDS = 120.0
_OPTIONAL_SHARE = 0.2
_LEAST_OPTIONAL_SECONDS = 1.0
_SETS = (
    "PATH",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "NODE_PATH",
    "NODE_OPTIONS",
    "LANG",
    "LC_ALL",
    "TZ",
    "HOME",
)
"""Variables whose values decide what a command does; others differ from shell to shell."""
_SLOTS: dict[CellName, str] = {
    "after": "head",
    "old_tests": "head",
    "before": "base",
    "old_code": "base",
}
_NAMES: dict[CellName, str] = {
    "before": "the baseline",
    "after": "the committed work",
    "old_tests": "the new code with the old tests",
    "old_code": "the old code with the new tests",
}
_RUN: TypeAdapter[CellRun] = TypeAdapter(CellRun)


class TimeOver(Exception):
    """All runs together took longer than they may."""


@dataclass
class Cells:
    """Runs cells for one proof."""

    checkouts: Checkouts
    change: TreeDiff
    base: str | None
    """The commit that failures are held against; the change's own base is the one for tests."""
    foreign: tuple[str, ...]
    """Commits of others that the work has merged."""
    check: ProveCheck
    settings: ProveSettings
    deadline: Deadline
    """The end of the time for all checks."""
    environ: Mapping[str, str]
    scratch: Path
    known: Path
    """The folder of results that are known already."""
    progress: Callable[[str], None]
    use_cache: bool = True
    whole_before: bool = False
    """Whether all tests are run on the baseline, because its commit will be proven next."""

    cells: dict[CellName, Cell] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    sharing: Sharing = field(init=False)
    _after_seconds: float = 0.0

    def __post_init__(self) -> None:
        root = self.change.git.repository.root
        self.sharing = Sharing(root, self.settings.share, self.environ)

    def answer(self, need: Need) -> CellRun:
        """Return what the run shows that is needed, and count it to its cell."""
        try:
            tree = self._tree(need)
        except CannotGraft as error:
            self.notes[str(error)] = None
            return CellRun("exited", None, 0.0, "tests", detail=str(error))
        if tree is not None:
            need = self._only_present(need, tree)
        if tree is None:
            return CellRun(
                "exited",
                None,
                0.0,
                "tests",
                detail="the command fails, and there is no commit before the first",
            )
        run = self._answer(need, tree)
        self._count(need, run)
        return run

    def try_tree(self, tree: str, files: frozenset[str] | None, attempt: int = 0) -> CellRun:
        """Return what the check says of a tree of the caller's; it belongs to no cell."""
        return self._answer(Need("after", files, attempt), tree)

    def _answer(self, need: Need, tree: str) -> CellRun:
        """Return a result that is known, also as a part of a larger one, or run the command."""
        is_known = self.use_cache and not need.attempt
        key = self._key(need, tree)
        run = self._recall(key) if is_known else None
        if run is None and need.files is not None and not need.attempt:
            run = self._narrow(replace(need, files=None), tree, need.files)
        if run is None:
            run = self._run(need, tree)
            self._remember(key, need, run)
        return run

    def _narrow(self, need: Need, tree: str, files: frozenset[str]) -> CellRun | None:
        """Return what a run of all tests says of some files; None if there is none that says anything of them."""
        if need.cell == "before" and self.whole_before:
            return self._answer(need, tree).narrow(files)
        whole = self._recall(self._key(need, tree)) if self.use_cache else None
        return whole.narrow(files) if whole is not None else None

    def _only_present(self, need: Need, tree: str) -> Need:
        """Ask for no test files that the tree does not have: a runner would not start."""
        if need.files is None:
            return need
        listed = self.checkouts.trees.listing(tree).files
        folders = {parent for path in listed for parent in parents_of(path)}
        kept = (os.fsencode(file) for file in need.files)
        names = frozenset(
            os.fsdecode(name) for name in kept if name in listed or name in folders or name == b"."
        )
        return replace(need, files=names or None)

    def _tree(self, need: Need) -> str | None:
        change, checkouts = self.change, self.checkouts
        if need.foreign:
            return checkouts.tree_of(self.foreign[need.foreign - 1])
        if need.cell == "before":
            base = change.base if need.of_tests else self.base
            return None if base is None else checkouts.tree_of(base)
        head = checkouts.tree_of(change.head)
        if need.cell == "after" or change.base is None:
            return head if need.cell == "after" else None
        base = checkouts.tree_of(change.base)
        if need.cell == "old_code":
            return checkouts.compose(head, (), [(path, base) for path in change.old_code()])
        paths, made = change.old_tests()
        return checkouts.compose(head, (), [(path, base) for path in paths], made)

    def _run(self, need: Need, tree: str) -> CellRun:
        limit = min(self.settings.timeout_seconds, self.deadline.left())
        if need.optional:
            limit = min(limit, max(_LEAST_OPTIONAL_SECONDS, self._after_seconds * _OPTIONAL_SHARE))
        if self.deadline.has_passed():
            raise TimeOver
        slot, what = _SLOTS[need.cell], _NAMES[need.cell]
        what = "a merged commit of others" if need.foreign else what
        some = f", {plural(len(need.files), 'file')} of tests" if need.files is not None else ""
        again = f", again ({need.attempt} of {self.settings.reruns})" if need.attempt else ""
        run_it = f"run {escape(self.check.command)} on {what}"
        self.progress(f"{run_it}{some}{again}")
        setup = self._set_up()
        with self.checkouts.open(slot, tree, self.change.head, setup) as checkout:
            self.notes |= dict.fromkeys(checkout.notes)
            shared = self.sharing.share(checkout.path)
            self.notes |= dict.fromkeys(shared.notes)
            leaks = (*checkout.links_to_project, *shared.leaks)
            if leaks:
                return CellRun("exited", None, 0.0, foreign_code=leaks)
            prepare = partial(
                self._prepare, limit=limit, environ=shared.environ, lends=checkout.lends
            )
            if not checkout.set_up(prepare):
                said = f"the set-up command fails: {self.settings.setup}"
                return CellRun("cannot_start", None, 0.0, detail=said)
            order = Order(
                command=self.change.command,
                folder=checkout.path,
                project=self.change.git.repository.root,
                environ=shared.environ,
                scratch=self.scratch,
                timeout_seconds=limit,
                slot=slot,
                select=need.files,
                junit=self.settings.junit or None,
                lends=checkout.lends,
                kind=self.check.kind,
                up=self.settings.up,
            )
            stamps = checkout.stamps(is_program)
            with self._services(order):
                run = execute(order, lambda line: self.progress(f"{run_it}{some}{again}; {line}"))
            run = replace(run, written=self._written(checkout, stamps))
        if run.end == "timeout" and self.deadline.has_passed():
            raise TimeOver
        return run

    def _written(self, checkout: Checkout, stamps: Mapping[bytes, FileStamp]) -> tuple[str, ...]:
        """Name the files of code that a run has written; a new file may be made again as it is."""
        base = self.checkouts.tree_of(self.change.base) if self.change.base is not None else None
        known = self.checkouts.trees.listing(base).files if base is not None else {}
        found = sorted(
            path
            for path in checkout.written_since(stamps)
            if path in known or not checkout.is_as_committed(path)
        )
        return tuple(path_line(path) for path in found[:_MOST_WRITTEN])

    @contextmanager
    def _services(self, order: Order) -> Iterator[None]:
        """Stop the services after the run, and before it if a guard was killed that had started them."""
        down = self.settings.down
        owed = self.checkouts.folder / f"services-{order.slot}"
        if not down:
            yield
            return
        stop = replace(order, command=down, timeout_seconds=_DOWN_SECONDS, kind="exit", up="")
        if owed.exists():
            execute(stop, self.progress)
        owed.touch()
        try:
            yield
        finally:
            self.progress(f"stop the services: {escape(down)}")
            ended = execute(stop, self.progress)
            if ended.exit_code == 0:
                owed.unlink(missing_ok=True)
            else:
                self.notes["prove.down fails; the services may still run"] = None

    def _set_up(self) -> SetUp | None:
        if not self.settings.setup:
            return None
        return SetUp(self.settings.setup, self.settings.setup_inputs or LOCK_FILES)

    def _prepare(
        self,
        command: str,
        folder: Path,
        *,
        limit: float,
        environ: Mapping[str, str],
        lends: tuple[int, ...],
    ) -> bool:
        self.progress(f"prepare the checkout: {command}")
        order = Order(
            command=command,
            folder=folder,
            project=self.change.git.repository.root,
            environ=environ,
            scratch=self.scratch,
            timeout_seconds=limit,
            slot="setup",
            lends=lends,
            kind="exit",
        )
        run = execute(order, self.progress)
        return run.end == "exited" and run.exit_code == 0

    def _key(self, need: Need, tree: str) -> str:
        settings = self.settings
        words = [
            _FORMAT.decode(),
            tree,
            self.change.command,
            self.check.kind,
            settings.setup,
            settings.up,
            settings.junit,
            *settings.share,
            *(f"{name}={self.environ.get(name, '')}" for name in _SETS),
            *(_stamp(folder) for folder in self._packages()),
            *("" if need.files is None else sorted(need.files) or ["-"]),
        ]
        text = "\0".join(words).encode(errors="surrogateescape")
        return sha256(text).hexdigest()

    def _packages(self) -> list[Path]:
        # What is installed there decides as much as the tree does.
        environment = self.environ.get("VIRTUAL_ENV")
        folders = list(Path(environment).glob("lib/python*/site-packages")) if environment else []
        root = self.change.git.repository.root
        return [*folders, *(root / name for name in self.settings.share)]

    def _recall(self, key: str) -> CellRun | None:
        try:
            path = self.known / f"{key}.json"
            age = time() - path.stat().st_mtime
            run = _RUN.validate_json(path.read_bytes())
        except (OSError, ValueError):
            return None
        fresh = _GREEN_SECONDS if run.is_green else _RED_SECONDS
        return replace(run, cached=True) if 0 <= age < fresh else None

    def _remember(self, key: str, need: Need, run: CellRun) -> None:
        if (
            run.end != "exited"
            or run.tampered
            or run.foreign_code
            or need.attempt
            or not run.is_whole
        ):
            return
        with suppress(OSError, GuardError), Folder.make(self.known) as folder:
            folder.replace(f"{key}.json", _RUN.dump_json(run), locked=False)
            _forget_oldest(self.known)

    def _count(self, need: Need, run: CellRun) -> None:
        if need.cell == "after" and not need.attempt:
            self._after_seconds = run.seconds
        self.cells[need.cell] = add_run(self.cells.get(need.cell), run)


def _stamp(folder: Path) -> str:
    try:
        return str(folder.stat().st_mtime_ns)
    except OSError:
        return "-"


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in files[:-_MOST_KEPT]:
        path.unlink(missing_ok=True)
