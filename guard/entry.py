"""The entry point of guard. Agents call a hook for every use of a tool, so hooks take a fast path."""

import os
import sys

_HELP = ("-h", "--help", "--version")
_WITH_VALUE = {"--repo": None, "--workspace": "GUARD_WORKSPACE", "--config": "GUARD_CONFIG"}
"""The options before a command that have a value, and the variable that says the same.

A hook passes over the repository: that is where the session is.
"""
_WITHOUT_VALUE = ("--verbose", "--quiet", "--")


def main() -> None:
    """Run guard and leave with its exit code."""
    words = sys.argv[1:]
    place = _hook_at(words)
    if place is None:
        from guard.cli import main as command_line

        command_line()
    elif any(word in _HELP for word in words):
        _help()
    else:
        from guard.hooks.call import call

        told, unknown = _options(words[:place])
        # At once: a stream that nobody reads any more would change the exit code of an orderly end.
        os._exit(call([*unknown, *words[place + 1 :]], {**os.environ, **told}))


def _hook_at(words: list[str]) -> int | None:
    """Return the position of `hook`, if that is the command."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _WITH_VALUE else 1
    return place if words[place : place + 1] == ["hook"] else None


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options before `hook` as variables, and the options that guard does not know."""
    told: dict[str, str] = {}
    unknown: list[str] = []
    rest = iter(words)
    for word in rest:
        name, given, value = word.partition("=")
        if name in _WITH_VALUE:
            value = value if given else next(rest, "")
            variable = _WITH_VALUE[name]
            if variable and value:
                told[variable] = value
        elif word not in _WITHOUT_VALUE and word.strip("vq") != "-":
            unknown.append(word)
    return told, unknown


def _help() -> None:
    # For people; but if an agent CLI ever calls this, it must not get another exit code.
    from guard.cli import main as command_line

    try:
        command_line()
    except SystemExit as end:
        if end.code:
            from guard.hooks import faults

            faults.note(os.environ, f"guard {' '.join(sys.argv[1:])}: exit code {end.code}")
        sys.exit(0)
