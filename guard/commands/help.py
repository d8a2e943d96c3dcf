"""`guard help`."""

import click

from guard.context.invocation import Invocation
from guard.errors import EXIT_CODES, WrongUsage

_TOPIC = "exit-codes"


@click.command("help")
@click.argument("topic", nargs=-1)
@click.pass_context
def command(ctx: click.Context, topic: tuple[str, ...]) -> None:
    """Show the help of a command or of a topic; `guard help exit-codes` explains the exit codes."""
    guard: Invocation = ctx.obj
    text = _exit_codes() if topic == (_TOPIC,) else _help_of(ctx.find_root(), topic)
    guard.output.result(text)


def _exit_codes() -> str:
    lines = ["Exit codes. Results and errors never share one.", ""]
    return "\n".join([*lines, *(f"{code:>5}  {meaning}" for code, meaning in EXIT_CODES.items())])


def _help_of(root: click.Context, words: tuple[str, ...]) -> str:
    place = root
    for word in words:
        group = place.command
        found = group.get_command(place, word) if isinstance(group, click.Group) else None
        if found is None:
            raise _unknown(place, word)
        place = click.Context(found, info_name=word, parent=place)
    return place.get_help()


def _unknown(place: click.Context, word: str) -> WrongUsage:
    from difflib import get_close_matches

    group = place.command
    known = group.list_commands(place) if isinstance(group, click.Group) else []
    topics = [*known, _TOPIC] if place.parent is None else known
    near = get_close_matches(word, topics, n=1)
    path = place.command_path.replace("guard", "guard help", 1)
    hint = (
        f"did you mean `{path} {near[0]}`?"
        if near
        else f"`{place.command_path} --help` shows the usage"
    )
    return WrongUsage(f"no help for {' '.join([place.command_path, word])!r}", hint)
