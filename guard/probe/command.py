"""Any program: the question on its stdin, one JSON document on its stdout.

It is named by the user, never by the project's files, and run without a shell. It finds the session's id in `GUARD_SESSION`.
"""

import re
import shlex

from guard.core.base.text import ID_PATTERN
from guard.probe.base import Call, CannotAsk, Cli, ProbeCall, ProbeOutput, ProbeQuestion


def _words_of(question: ProbeQuestion) -> list[str]:
    try:
        words = shlex.split(question.command or "")
    except ValueError as error:
        raise CannotAsk(
            "no_cli", f"the probe command cannot be split into words: {error}"
        ) from None
    if not words:
        raise CannotAsk("no_cli", "the agent `command` needs a probe command")
    return words


def _call(probe: ProbeCall) -> Call:
    session = {"GUARD_SESSION": probe.session} if probe.question.session else {}
    argv = [probe.program, *_words_of(probe.question)[1:]]
    return Call(argv, probe.question.cwd, {**probe.environ, **session}, probe.text.encode())


CLI = Cli(
    lambda question: _words_of(question)[0],
    _call,
    ProbeOutput,
    sessions=re.compile(ID_PATTERN),
    needs_session=False,
    whole_may_omit_nonce=True,
)
