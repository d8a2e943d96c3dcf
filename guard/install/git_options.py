"""Install and uninstall git's hooks as the options ask, and report what was done."""

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from guard.context.config import state_home
from guard.context.invocation import Invocation
from guard.core.base.text import escape, utf8_text
from guard.core.install.report import GitHookLine, GitHooksReport, HookName
from guard.errors import WrongUsage
from guard.hooks import spool
from guard.hooks.git.note import SEEN, expect_checks, notes_folder
from guard.install import git_hooks
from guard.install.command_line import check_command, own_path

AGENT = "git"
_CHANGES = ("install", "upgrade", "remove", "restore")
_DONE = {
    "install": "installed",
    "upgrade": "upgraded",
    "unchanged": "nothing to change",
    "remove": "removed",
    "restore": "removed; the hook from before is back",
    "absent": "not guard's",
    "left": "left as it is",
}


def install_git_hooks(
    guard: Invocation, named: Sequence[str], *, shared: bool, dry_run: bool, command: str | None
) -> GitHooksReport:
    events = _events(named)
    folder = git_hooks.writable_folder(guard.repository, guard.environ, shared=shared)
    called = _program(guard, command)
    if dry_run:
        plan = git_hooks.plan_install(folder, events, called)
    else:
        plan = git_hooks.install(folder, events, called)
        _expect_checks(guard, events)
    return _report("install", folder, plan, dry_run, called, _notes(guard, folder))


def uninstall_git_hooks(
    guard: Invocation, named: Sequence[str], *, shared: bool, dry_run: bool
) -> GitHooksReport:
    events = _events(named)
    folder = git_hooks.writable_folder(guard.repository, guard.environ, shared=shared)
    if dry_run:
        plan = git_hooks.plan_removal(folder, events)
    else:
        plan = git_hooks.uninstall(folder, events)
        _expect_none(guard, events)
    return _report("uninstall", folder, plan, dry_run)


def _events(named: Sequence[str]) -> list[HookName]:
    return [event for event in get_args(HookName) if event in named or not named]


def _program(guard: Invocation, command: str | None) -> str:
    # One path or name: the scripts look for it before they call it.
    words = shlex.split(check_command(command) if command else own_path(guard.environ))
    if len(words) > 1 and command:
        raise WrongUsage(
            "--command should be one program for git's hooks",
            "put the command into a script, and name that",
        )
    return words[0] if len(words) == 1 else "guard"


def _expect_checks(guard: Invocation, events: Sequence[str]) -> None:
    if "pre-commit" in events:
        with suppress(OSError, spool.NotSpooled):
            expect_checks(_notes_folder(guard))


def _expect_none(guard: Invocation, events: Sequence[str]) -> None:
    if "pre-commit" in events:
        with suppress(OSError):
            os.unlink(os.path.join(_notes_folder(guard), SEEN))


def _notes_folder(guard: Invocation) -> str:
    return notes_folder(str(state_home(guard.environ)), str(guard.repository.root))


def _notes(guard: Invocation, folder: Path) -> tuple[str, ...]:
    root, common = map(os.path.realpath, (guard.repository.root, guard.repository.common_dir))
    if folder.is_relative_to(root) and not folder.is_relative_to(common):
        return (f"{folder} lies in the work tree: the scripts name a path of this machine",)
    return ()


def _report(
    action: Literal["install", "uninstall"],
    folder: Path,
    plan: list[GitHookLine],
    dry_run: bool,
    called: str | None = None,
    notes: tuple[str, ...] = (),
) -> GitHooksReport:
    return GitHooksReport(
        action=action,
        folder=utf8_text(folder),
        hooks=tuple(plan),
        changed=any(line.step in _CHANGES for line in plan),
        dry_run=dry_run,
        program=utf8_text(called) if called else None,
        notes=tuple(map(utf8_text, notes)),
    )


def text(report: GitHooksReport) -> str:
    would = "would be " if report.dry_run else ""
    lines = [f"{report.folder}:"]
    for line in report.hooks:
        changes = line.step in _CHANGES
        after = "; the hook that is there is called first" if line.chained and changes else ""
        after = after if report.action == "install" else ""
        why = f": {line.detail}" if line.detail else ""
        lines.append(f"  {line.hook}: {would if changes else ''}{_DONE[line.step]}{why}{after}")
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join(map(escape, lines))
