"""The entry point of guard, with a fast path for hooks, which agents call for every use of a tool."""

import os
import sys

_HELP = ("-h", "--help", "--version")
_WITH_VALUE = {"--repo": None, "--workspace": "GUARD_WORKSPACE", "--config": "GUARD_CONFIG"}
"""The options before a command that have a value, and the variable with the same meaning.

A hook ignores --repo, because the session already runs in its repository.
"""
_WITHOUT_VALUE = ("--verbose", "--quiet", "--")


def main() -> None:
    """Run guard and exit with its exit code; a hook call does not go through `guard.cli`."""
    words = sys.argv[1:]
    place = _hook_at(words)
    if place is None:
        from guard.cli import main as command_line

        command_line()
    elif any(word in _HELP for word in words):
        _help()
    else:
        from guard.hooks.call import call

        variables, unknown = _options(words[:place])
        # No orderly shutdown: a stream without a reader would change its exit code.
        os._exit(call([*unknown, *words[place + 1 :]], {**os.environ, **variables}))


def _hook_at(words: list[str]) -> int | None:
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _WITH_VALUE else 1
    return place if words[place : place + 1] == ["hook"] else None


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    # Known options become variables; the others are returned as they are.
    variables: dict[str, str] = {}
    unknown: list[str] = []
    rest = iter(words)
    for word in rest:
        name, given, value = word.partition("=")
        if name in _WITH_VALUE:
            value = value if given else next(rest, "")
            variable = _WITH_VALUE[name]
            if variable and value:
                variables[variable] = value
        elif word not in _WITHOUT_VALUE and word.strip("vq") != "-":
            unknown.append(word)
    return variables, unknown


def _help() -> None:
    # The help is for people, but an agent CLI that calls it must not get an exit code other than 0.
    from guard.cli import main as command_line

    try:
        command_line()
    except SystemExit as end:
        if end.code:
            from guard.hooks import faults

            faults.note(os.environ, f"guard {' '.join(sys.argv[1:])}: exit code {end.code}")
        sys.exit(0)
