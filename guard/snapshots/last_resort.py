"""Save the work tree before a command gives up, wherever it can be written.

The shadow repository of the workspace comes first. Where that is gone, replaced, full or read-only, the snapshot goes into one
that is made for it: in the state home, beside the workspace, or with the temporary files. `guard snapshots` and `guard restore`
look in all of these.
"""

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from guard.context.config import state_home
from guard.context.invocation import Invocation
from guard.context.workspace import Workspace, ensure, worktree_key
from guard.core.base.text import escape, fit_line
from guard.core.config.resolve import Resolved
from guard.core.rescue.settings import RescueSettings, SnapshotLimits
from guard.core.snapshots.snapshot import Occasion, Snapshot
from guard.errors import (
    ConfigProblem,
    GuardError,
    RepositoryProblem,
    StateProblem,
    StoreUnavailable,
)
from guard.git import locate
from guard.git.locate import Repository
from guard.git.run import GitTimedOut
from guard.snapshots.inventory import Shelf
from guard.snapshots.project import Site
from guard.snapshots.shadow import SHADOW_FOLDER, ref_in_command, refuse_untrusted
from guard.snapshots.take import take_and_prune
from guard.system.clock import Deadline
from guard.system.private_files import Folder

P = ParamSpec("P")
T = TypeVar("T")
FOLDER = "rescued.d"
_KEPT_LONGER = "/var/tmp"  # noqa: S108
"""Unlike `/tmp`, this folder is kept when the machine restarts. The names in it are the user's own, and checked."""
_TEMPORARY = "guard-rescued-"
_HINT = "run the command again"


class SavedWork(NamedTuple):
    """A snapshot, and the workspace or the other place that it is in."""

    snapshot: Snapshot
    place: Path


class NothingSaved(Exception):
    """No snapshot could be taken anywhere; the message says why."""


@contextmanager
def save_before_abort(
    guard: Invocation, *, whatever: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """If the state turns out to be broken, save the work tree, and have the error say where.

    `whatever` tells whether every other error endangers the work as well, because an agent has worked.
    """
    try:
        yield
    except GuardError as error:
        if whatever() or isinstance(error, StateProblem | StoreUnavailable):
            raise add_snapshot(guard, error) from None
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        problem = StoreUnavailable(f"{place}{error.strerror or error}", _HINT)
        raise add_snapshot(guard, problem) from error
    except Exception:
        # A bug. The boundary reports it; the work of an agent is saved first.
        if whatever():
            told = add_snapshot(guard, StoreUnavailable("guard cannot judge the iteration"))
            guard.output.warn(f"{told.message}; {told.hint}")
        raise


def saves_before_abort(
    function: Callable[Concatenate[Invocation, P], T],
) -> Callable[Concatenate[Invocation, P], T]:
    """Have a function save the work tree if it meets a broken state."""

    @wraps(function)
    def call(guard: Invocation, /, *words: P.args, **named: P.kwargs) -> T:
        with save_before_abort(guard):
            return function(guard, *words, **named)

    return call


def add_snapshot(guard: Invocation, error: GuardError) -> GuardError:
    """Save the work tree before this error ends the command; return the error with where that is, or why it is nowhere."""
    if error.tells_of_snapshot:
        return error
    error.tells_of_snapshot = True
    try:
        saved = save(guard, Occasion("check", guard.clock.now()))
    except NothingSaved as nothing:
        error.message = f"{error.message}; no snapshot could be taken: {nothing}"
        return error
    kept = saved.snapshot
    # Where another command does not find the workspace, only git can bring it back.
    command = restore_command(guard, kept.id) if _is_found_anew(guard) else kept.recover
    error.message = f"{error.message}; the work tree is saved: {command}"
    hint = f"{error.hint}; " if error.hint else ""
    error.hint = f"{hint}{kept.words}: {kept.recover}"
    if not kept.whole and kept.skipped:
        error.hint += f"; not in the snapshot: {kept.skipped[0]}"
    return error


def restore_command(guard: Invocation, identity: str) -> str:
    """Return the command that brings a snapshot back, with the options of this call that it needs to find it."""
    options = ["--repo", os.fspath(guard.repo.absolute())] if guard.repo is not None else []
    if guard.workspace_option is not None:
        options += ["--workspace", os.path.abspath(os.path.expanduser(guard.workspace_option))]
    words = ["guard", *options, "restore", identity, "--to", "DIR"]
    return escape(" ".join(map(shlex.quote, words)))


def save(guard: Invocation, occasion: Occasion) -> SavedWork:
    """Take a snapshot in the first place that can be written; `NothingSaved` if there is none."""
    reasons: list[str] = []
    try:
        repository = _find_repository(guard)
        limits = SnapshotLimits(_settings(guard))
    except GuardError as error:
        raise NothingSaved(error.message) from None
    deadline = Deadline(limits.settings.time_limit_seconds)
    for place in _list_places(guard, repository):
        try:
            if place != _own_place(guard):
                _prepare(place, repository, guard)
            site = Site(repository, place, guard.environ, deadline.left())
            return SavedWork(take_and_prune(site, occasion, limits=limits), place)
        except RepositoryProblem as error:
            raise NothingSaved(error.message) from None
        except (GuardError, OSError) as error:
            reasons.append(error.message if isinstance(error, GuardError) else str(error))
            if deadline.has_passed():
                break
    raise NothingSaved(fit_line("; ".join(reasons) or "there is no place for one"))


def _settings(guard: Invocation) -> RescueSettings:
    # Settings that cannot be read keep nothing from being saved.
    for name in ("config", "users_config"):
        with suppress(ConfigProblem, StateProblem):
            resolved: Resolved = getattr(guard, name)
            return resolved.settings.rescue
    return RescueSettings.model_construct()


def _find_repository(guard: Invocation) -> Repository:
    try:
        return guard.repository
    except StateProblem:
        # The index is damaged; the folder itself may tell.
        return locate.find_repository(guard.repo or Path.cwd(), lambda _folder: None)


def _own_place(guard: Invocation) -> Path | None:
    try:
        return guard.workspace.path
    except GuardError:
        return None


def _is_found_anew(guard: Invocation) -> bool:
    """Tell whether the next command finds the workspace: the agent may have broken the index or a folder above it since."""
    anew = Invocation(
        guard.repo, guard.workspace_option, guard.config_file, guard.clock, environ=guard.environ
    )
    return _own_place(anew) is not None


def _list_places(guard: Invocation, repository: Repository) -> Iterator[Path]:
    # A workspace that is not there is not made: it may have been moved away, and may come back.
    own = _own_place(guard)
    if own is not None and own.is_dir() and not own.is_symlink():
        yield own
    yield from _fallbacks(guard, repository)


def _fallbacks(guard: Invocation, repository: Repository) -> Iterator[Path]:
    key, own = worktree_key(repository.root), _own_place(guard)
    with suppress(ConfigProblem):
        yield state_home(guard.environ) / FOLDER / key
    if own is not None:
        yield own.with_name(f"{own.name}.rescued")
    given = guard.environ.get("TMPDIR", "")
    temporary = Path(given if os.path.isabs(given) else _KEPT_LONGER)
    if not Path(os.path.realpath(temporary)).is_relative_to(repository.root):
        yield temporary / f"{_TEMPORARY}{os.geteuid()}" / key


def _prepare(place: Path, repository: Repository, guard: Invocation) -> None:
    if place.parent.name.startswith(_TEMPORARY):
        Folder.make(place.parent).close()
    elif place.parent.name == FOLDER:
        os.makedirs(place.parent, mode=0o700, exist_ok=True)
    ensure(Workspace(place, "rescued", repository, explicit=True), guard.environ)


def find_fallbacks(guard: Invocation) -> tuple[Path, ...]:
    """Return the places besides the workspace in which snapshots of this work tree are; most often there is none."""
    repository = guard.repository_if_any
    return tuple(filter(_is_ours, _fallbacks(guard, repository))) if repository else ()


def has_snapshot(guard: Invocation, recover: str) -> bool:
    """Tell whether the snapshot that this command brings back is still there, in a shadow repository that guard trusts."""
    ref = ref_in_command(recover)
    if ref is None:
        return True
    words = ("cat-file", "-e", f"{ref}:manifest.json")
    limit = guard.users_config.settings.rescue.time_limit_seconds
    for place in (guard.workspace.path, *find_fallbacks(guard)):
        try:
            refuse_untrusted(place)
            if Shelf(place / SHADOW_FOLDER, guard.environ, limit).run(*words).code == 0:
                return True
        except GitTimedOut:
            raise  # A git that does not answer does not say that it is gone.
        except (GuardError, OSError):
            continue
    return False


def _is_ours(place: Path) -> bool:
    if not os.path.lexists(place):
        return False
    try:
        parent = Folder.open(place.parent) if place.parent.name.startswith(_TEMPORARY) else None
        folder = Folder.open(place)
    except GuardError:
        return False
    for opened in (parent, folder):
        if opened is not None:
            opened.close()
    return folder is not None
