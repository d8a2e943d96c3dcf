"""`guard hook`."""

import os

import click

from guard.core.hooks.event_kinds import ANSWERED, GIT_HOOKS, KINDS
from guard.hooks.call import call

_HELP = """Take in, or answer, what an agent's own program, or git, calls its hooks for.

The calls stand in the settings of the agent's program; nobody types them. The document of the event is read on
standard input. {answered} are answered on standard output, in the words of that program. All others are
only taken in, and nothing is printed.

For an agent the exit code is always 0: a fault of guard must not hold a session up. What went wrong is kept in
`hooks.log`, in the folder of guard's workspaces.

For git the words are `git`, the hook's name, and what git tells it. The exit code is 1 where `pre-commit` or `pre-push`
has findings, else 0; GUARD_SKIP=1, or the names of hooks, leaves them out. GUARD_REFUSAL=97 has findings end with 97,
because a guard that is broken may end with 1 as well.

\b
{events}
"""


def _events() -> str:
    wide = max(map(len, KINDS))
    lines = []
    for agent, events in KINDS.items():
        line = f"{agent:<{wide}} "
        for event in events:
            if len(line) + len(event) > 90:
                lines.append(line)
                line = " " * (wide + 1)
            line += f" {event}"
        lines.append(line)
    lines.append(f"{'git':<{wide}}  {' '.join(GIT_HOOKS)}")
    return "\n".join(lines)


def _answered() -> str:
    names = {
        event for events in KINDS.values() for event, kind in events.items() if kind in ANSWERED
    }
    return ", ".join(sorted(names, key=lambda name: (name.lower(), name)))


@click.command(
    "hook",
    help=_HELP.format(answered=_answered(), events=_events()),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="AGENT EVENT")
def command(words: tuple[str, ...]) -> int:
    return call(words, os.environ)
