"""List the files of an installation: how guard's part comes into each of them, and out of it again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from guard.install import merge, plugins
from guard.install.agents import CLAUDE, OPENCODE, AgentCli
from guard.install.merge import Origin


@dataclass(frozen=True)
class SettingsPiece:
    """One file with a part of guard's in it; its functions raise a ValueError for a text that does not fit."""

    path: Path
    put: Callable[[str | None], str]
    """The file's text with guard's part in it."""
    take: Callable[[str, Origin | None], str | None]
    """The file's text without it; None if there should be no file."""
    origin: Callable[[str | None], Origin]
    """What guard has to remember before its part comes into the file."""
    events: Callable[[str], tuple[str, ...]]
    """The events that guard's part of it is for; empty if it has no such part."""
    others: Callable[[str], tuple[str, ...]] = lambda _text: ()
    """Notes on hooks in it that are not guard's, and call guard."""


def settings_piece(path: Path, cli: AgentCli, command: str) -> SettingsPiece:
    """Return the piece for an agent's settings file, which guard shares with others, or for OpenCode's plugin."""
    if cli is OPENCODE:
        text = plugins.opencode_plugin(command)
        return _own_file(path, text, plugins.is_opencode_plugin, cli.events)
    return SettingsPiece(
        path=path,
        put=lambda text: merge.add_hooks(text, cli, command),
        take=lambda text, origin: merge.remove_hooks(text, cli, origin),
        origin=lambda text: merge.read_origin(text, cli),
        events=lambda text: tuple(merge.own_hooks(text, cli)) if text.strip() else (),
        others=lambda text: tuple(_notes_on_others(text, cli)),
    )


def claude_plugin_pieces(folder: Path, command: str) -> tuple[SettingsPiece, ...]:
    """Return the pieces for the files of Claude Code's plugin, all of them guard's own."""
    texts = plugins.claude_plugin(command)
    manifest, hooks = plugins.CLAUDE_MANIFEST, plugins.CLAUDE_HOOKS
    return (
        _own_file(folder / manifest, texts[manifest], plugins.is_claude_manifest, ()),
        _own_file(folder / hooks, texts[hooks], plugins.is_claude_hooks, CLAUDE.events),
    )


def _notes_on_others(text: str, cli: AgentCli) -> Iterator[str]:
    if text.strip("\ufeff \t\r\n"):
        for event, line, _ in merge.foreign_calls(text, cli):
            yield f"{event}: `{line}` also calls guard; it stays"


def _own_file(
    path: Path, own: str, is_ours: Callable[[str], bool], events: tuple[str, ...]
) -> SettingsPiece:
    return SettingsPiece(
        path=path,
        put=partial(_replace, own, is_ours),
        take=lambda text, _origin: None if is_ours(text) else text,
        origin=lambda _text: Origin(created=True),
        events=lambda text: events if is_ours(text) else (),
    )


def _replace(own: str, is_ours: Callable[[str], bool], text: str | None) -> str:
    if text is not None and text.strip() and not is_ours(text):
        raise ValueError("it is there already, and is not guard's")
    return own
