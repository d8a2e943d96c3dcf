"""The files that an installation is made of: how guard's part comes into each of them, and out of it again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from guard.install import merge as merging
from guard.install import opencode, plugin
from guard.install.base import AgentProgram
from guard.install.merge import Origin


@dataclass(frozen=True)
class SettingsPiece:
    """One file. What does not fit raises a ValueError."""

    path: Path
    put: Callable[[str | None], str]
    """Its text with guard's part in it."""
    take: Callable[[str, Origin | None], str | None]
    """Its text without it; None if there should be no file."""
    origin: Callable[[str | None], Origin]
    """What has to be remembered before guard's part comes into it."""
    events: Callable[[str], tuple[str, ...]]
    """The events that guard's part of it is for; none if it has no such part."""
    others: Callable[[str], tuple[str, ...]] = lambda _text: ()
    """What to say of hooks in it that are not guard's, and call it."""


def settings(path: Path, host: AgentProgram, command: str) -> SettingsPiece:
    """A settings file that guard shares with others."""
    return SettingsPiece(
        path=path,
        put=lambda text: merging.installed(text, host, command),
        take=lambda text, origin: merging.uninstalled(text, host, origin),
        origin=lambda text: merging.origin_of(text, host),
        events=lambda text: tuple(merging.present(text, host)) if text.strip() else (),
        others=lambda text: tuple(_others(text, host)),
    )


def _others(text: str, host: AgentProgram) -> Iterator[str]:
    if text.strip("\ufeff \t\r\n"):
        for event, line, _ in merging.others(text, host):
            yield f"{event}: `{line}` also calls guard; it stays"


def opencode_plugin(path: Path, command: str) -> SettingsPiece:
    """OpenCode's plugin, a file of guard's own."""
    return _own(path, opencode.plugin(command), opencode.is_ours, opencode.HOST.events)


def claude_plugin(folder: Path, command: str) -> tuple[SettingsPiece, ...]:
    """The files of Claude Code's plugin, all of them guard's own."""
    from guard.install.claude import HOST

    made = plugin.texts(command)
    return (
        _own(folder / plugin.MANIFEST, made[plugin.MANIFEST], plugin.is_manifest, ()),
        _own(folder / plugin.HOOKS, made[plugin.HOOKS], plugin.is_hooks, HOST.events),
    )


def _own(
    path: Path, made: str, is_ours: Callable[[str], bool], events: tuple[str, ...]
) -> SettingsPiece:
    return SettingsPiece(
        path=path,
        put=partial(_replaced, made, is_ours),
        take=lambda text, _origin: None if is_ours(text) else text,
        origin=lambda _text: Origin(created=True),
        events=lambda text: events if is_ours(text) else (),
    )


def _replaced(made: str, is_ours: Callable[[str], bool], text: str | None) -> str:
    if text is not None and text.strip() and not is_ours(text):
        raise ValueError("it is there already, and is not guard's")
    return made
