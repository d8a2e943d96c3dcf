"""`guard hook`."""

import os

import click

from guard.core.hooks.event_kinds import ANSWERED, GIT_HOOKS, KINDS
from guard.hooks.call import call

_HELP = """Handle a hook call from an agent CLI or from git.

The calls stand in the settings of the agent CLI or in git's hooks; you do not type them. Guard reads the event's document
on standard input. It answers {answered} on standard output, in the format of that CLI. It only records all
other events, and prints nothing.

For an agent the exit code is always 0, because a fault of guard must not stop a session. Faults are written to
`hooks.log`, in the folder of guard's workspaces.

For git the arguments are `git`, the name of the hook, and git's own arguments. The exit code is 1 if `pre-commit` or
`pre-push` has findings, or if a secret is committed while an iteration is running (also in `prepare-commit-msg`),
else 0. GUARD_SKIP=1, or a list of hook names, skips them. With GUARD_REFUSAL=97 the exit code for
findings is 97, because a broken guard may also exit with 1.

\b
{events}
"""


def _event_lines() -> str:
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


def _answered_events() -> str:
    names = {
        event for events in KINDS.values() for event, kind in events.items() if kind in ANSWERED
    }
    return ", ".join(sorted(names, key=lambda name: (name.lower(), name)))


@click.command(
    "hook",
    help=_HELP.format(answered=_answered_events(), events=_event_lines()),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="AGENT EVENT")
def command(words: tuple[str, ...]) -> int:
    return call(words, os.environ)
