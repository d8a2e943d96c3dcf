"""Where guard is entered. A hook of an agent is called for every use of a tool, so it goes a way of its own."""

import os
import sys


def main() -> None:
    """Run guard and leave with its exit code."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and not any(word.startswith("-") for word in words):
        from guard.agent_hooks.call import call

        # At once: a stream that nobody reads any more would change the exit code of an orderly end.
        os._exit(call(words[1:], os.environ))
    from guard.cli import main as command_line

    command_line()
