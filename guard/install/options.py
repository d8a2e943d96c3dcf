"""Define the options that `guard install` and `guard uninstall` share, and resolve what they ask for together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import click

from guard.context.invocation import Invocation
from guard.core.base.text import escape, utf8_text
from guard.core.hooks.event_kinds import GIT_HOOKS
from guard.core.install.report import InstallReport
from guard.errors import WrongUsage
from guard.install.agents import AGENT_CLIS, AgentCli, Scope
from guard.install.apply import SettingsFileChange
from guard.install.command_line import check_command, name_on_path, own_path
from guard.install.files import SettingsPiece, claude_plugin_pieces, settings_piece

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class InstallOptions:
    """The options of `guard install` and `guard uninstall`; a WrongUsage if some are for git, and others not."""

    agent: str
    user: bool
    project: bool
    local: bool
    plugin: Path | None
    hooks: tuple[str, ...]
    shared: bool
    dry_run: bool
    with_diff: bool = False
    command: str | None = None

    def __post_init__(self) -> None:
        scopes = self.scopes()
        if self.agent == "git" and scopes:
            raise WrongUsage(
                f"--{scopes[0]} is not for git", "git's hooks are those of the repository"
            )
        if self.agent != "git" and (self.hooks or self.shared):
            raise WrongUsage("--hook and --shared are for git only", "leave them out")

    def scopes(self) -> list[Scope]:
        names: tuple[Scope, ...] = ("user", "project", "local", "plugin")
        return [name for name in names if getattr(self, name)]


@dataclass(frozen=True)
class InstallTarget:
    """The files of one agent and one scope, and the command that their hooks call."""

    cli: AgentCli
    scope: Scope
    root: Path | None
    """The folder that the files have to stay in; None for those of the user."""
    pieces: tuple[SettingsPiece, ...]
    command: str
    notes: tuple[str, ...]
    is_private: bool = False
    """Whether a file in the repository is for this user alone, and is to be kept out of commits."""
    other: SettingsPiece | None = None
    """The file of the other scope of this repository, whose hooks would be called besides these."""


def where_options(function: F) -> F:
    for option in reversed(
        (
            click.argument("agent", metavar="AGENT|git", type=click.Choice([*AGENT_CLIS, "git"])),
            click.option("--user", is_flag=True, help="Install for all projects of this user."),
            click.option(
                "--project",
                is_flag=True,
                help="Install for everyone who works in this repository, in a file to be committed.",
            ),
            click.option(
                "--local",
                is_flag=True,
                help="Install for this user in this repository: .claude/settings.local.json (claude only, its default).",
            ),
            click.option(
                "--plugin",
                type=click.Path(file_okay=False, path_type=Path),
                metavar="DIR",
                help="Write a plugin to this folder instead of settings (claude only).",
            ),
            click.option(
                "--hook",
                "hooks",
                multiple=True,
                type=click.Choice(GIT_HOOKS),
                help="Only this hook; may be repeated (git only).",
            ),
            click.option(
                "--shared",
                is_flag=True,
                help="Also if core.hooksPath points outside the repository (git only).",
            ),
            click.option(
                "--dry-run", is_flag=True, help="Show what would change, and change nothing."
            ),
            click.option("--diff", "with_diff", is_flag=True, help="Show the change as a diff."),
        )
    ):
        function = option(function)
    return function


def install_target(guard: Invocation, install_options: InstallOptions) -> InstallTarget:
    """Return what the options ask for; raise a WrongUsage if they contradict each other."""
    cli, scope = AGENT_CLIS[install_options.agent], _scope(install_options)
    called, notes = _command(guard, scope, install_options.command)
    if install_options.plugin is not None:
        root: Path | None = install_options.plugin.absolute()
        pieces = claude_plugin_pieces(install_options.plugin.absolute(), called)
        return InstallTarget(cli, scope, root, pieces, called, notes + cli.notes(scope))
    root = None if scope == "user" else guard.repository.root
    path = cli.settings_path(scope, root, guard.environ)
    own = settings_piece(path, cli, called)
    other = None
    if root is not None and cli.local_file:
        beside: Scope = "project" if scope == "local" else "local"
        other = settings_piece(cli.settings_path(beside, root, guard.environ), cli, called)
    is_private = root is not None and not install_options.project
    return InstallTarget(
        cli, scope, root, (own,), called, notes + cli.notes(scope), is_private, other
    )


def _scope(install_options: InstallOptions) -> Scope:
    scopes = install_options.scopes()
    if len(scopes) > 1:
        raise WrongUsage(
            f"--{scopes[0]} and --{scopes[1]} exclude each other", "choose one of them"
        )
    if scopes and scopes[0] in ("local", "plugin") and install_options.agent != "claude":
        raise WrongUsage(f"--{scopes[0]} is for claude only", "leave it out, or use --user")
    return scopes[0] if scopes else AGENT_CLIS[install_options.agent].usual_scope


def _command(guard: Invocation, scope: Scope, named: str | None) -> tuple[str, tuple[str, ...]]:
    # The second value holds notes for the user.
    if named is not None:
        return check_command(named), ()
    if scope in ("user", "local"):
        return own_path(guard.environ), ()
    name = name_on_path(guard.environ)
    if name is not None:
        return name, ()
    path = own_path(guard.environ)
    note = f"`guard` on the search path is not this installation: the hooks name {path}, on this machine only"
    return path, (f"{note}; `--command` names another",)


def report(
    target: InstallTarget,
    changes: list[SettingsFileChange],
    action: str,
    more: Sequence[str] = (),
    *,
    dry_run: bool,
) -> InstallReport:
    installing = action == "install"
    changed = any(change.is_change for change in changes)
    notes = [*more, *(note for change in changes for note in change.notes)]
    diffs = [change.diff for change in changes if change.is_change]
    return InstallReport(
        action="install" if installing else "uninstall",
        agent=target.cli.agent,
        scope=target.scope,
        paths=tuple(utf8_text(change.path) for change in changes),
        changed=changed,
        dry_run=dry_run,
        diff="\n".join(diffs),
        events=tuple(dict.fromkeys(event for change in changes for event in change.events)),
        command=utf8_text(target.command) if installing else None,
        notes=tuple(map(utf8_text, [*(target.notes if installing else ()), *notes])),
    )


def text(report: InstallReport, *, with_diff: bool) -> str:
    diff = report.diff.split("\n") if with_diff or report.dry_run else ()
    lines = [escape(line.replace("\t", "    ")) for line in diff if line]
    done = {True: "written", False: "removed from it"}[report.action == "install"]
    if not report.changed:
        done = "nothing to change"
    elif report.dry_run:
        done = f"would be {done}"
    listed = f" ({', '.join(report.events)})" if report.events else ""
    lines += [escape(f"{path}: {done}{listed}") for path in report.paths]
    lines += [escape(f"note: {note}") for note in report.notes]
    if report.action == "install" and not report.dry_run and report.changed:
        lines += _how_to_take_back(report)
    return "\n".join(lines)


def _how_to_take_back(report: InstallReport) -> list[str]:
    usual = AGENT_CLIS[report.agent].usual_scope
    where = "" if report.scope == usual else f" --{report.scope}"
    where += (
        f" {quote(str(Path(report.paths[0]).parent.parent))}" if report.scope == "plugin" else ""
    )
    answered = "holds a stop that leaves uncommitted work or running helpers"
    told = "only records what happens" if report.agent == "opencode" else answered
    return [
        f"guard now hears of this agent's sessions, and {told}",
        f"`guard uninstall {report.agent}{where}` takes it back; `--diff` shows every line",
    ]
