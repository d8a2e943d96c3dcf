"""Install and uninstall an agent's hooks as the options ask: in one file, not in two, and not in the next agent's commit."""

from contextlib import suppress
from dataclasses import replace

from guard.context.invocation import Invocation
from guard.core.install.report import InstallReport
from guard.errors import GuardError
from guard.install import exclude, options, settings_file
from guard.install.apply import SettingsFileChange, put_piece, take_piece
from guard.install.files import SettingsPiece
from guard.install.options import InstallOptions, InstallTarget


def choose_target(guard: Invocation, given: InstallOptions) -> InstallTarget:
    """Return what the options ask for; hooks that are committed already stay in that file unless it is named otherwise."""
    target = options.install_target(guard, given)
    if given.scopes() or target.other is None or not _has_hooks(target.other, target):
        return target
    if not exclude.is_tracked(guard, target.other.path):
        return target
    shared = options.install_target(guard, replace(given, project=True))
    told = "the hooks are in this file, which git tracks; `guard uninstall {0} --project` and `guard install {0}` move them"
    return replace(shared, notes=(*shared.notes, told.format(given.agent)), other=None)


def install_hooks(guard: Invocation, target: InstallTarget, *, dry_run: bool) -> InstallReport:
    # The dry run shows that each piece fits before any is written.
    for dry in (True,) if dry_run else (True, False):
        changes = [
            put_piece(piece, target.root, guard.environ, dry_run=dry) for piece in target.pieces
        ]
    notes = []
    if target.other is not None and _has_hooks(target.other, target):
        moved = take_piece(target.other, target.root, guard.environ, dry_run=dry_run)
        changes.append(replace(moved, events=()))
        notes.append(f"the hooks in {moved.path} are taken out: guard would be called twice")
    if target.is_private:
        notes.append(exclude.keep_out(guard, target.pieces[0].path, dry_run=dry_run))
    elif target.scope == "project" and not dry_run:
        _let_in(guard, target)
    return options.report(target, changes, "install", notes, dry_run=dry_run)


def uninstall_hooks(guard: Invocation, given: InstallOptions) -> InstallReport:
    """Remove the hooks from the file that the options name, or from every file of this repository that has them."""
    target = options.install_target(guard, given)
    pieces = target.pieces
    other = target.other
    if not given.scopes() and other is not None and _has_hooks(other, target):
        own = pieces if _has_hooks(pieces[0], target) else ()
        target = target if own else replace(target, scope="project")
        pieces = (*own, other)
    # The last piece goes first, because the folders made for the first piece may hold the others.
    changes: list[SettingsFileChange] = [
        take_piece(piece, target.root, guard.environ, dry_run=given.dry_run)
        for piece in reversed(pieces)
    ]
    if target.root is not None and given.plugin is None and not given.dry_run:
        _let_in(guard, target)
    return options.report(target, changes, "uninstall", dry_run=given.dry_run)


def _has_hooks(piece: SettingsPiece, target: InstallTarget) -> bool:
    # A file that cannot be read has no hooks that anybody calls.
    with suppress(GuardError, ValueError):
        text = settings_file.read_text(settings_file.resolve(piece.path, target.root))
        return bool(text and piece.events(text))
    return False


def _let_in(guard: Invocation, target: InstallTarget) -> None:
    others = (target.other,) if target.other is not None else ()
    for piece in (*target.pieces, *others):
        with suppress(GuardError):
            exclude.let_in(guard, piece.path)
