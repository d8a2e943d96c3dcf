"""Claude Code: a fork of the session that is not kept, without tools, servers or hooks.

`--continue` is never used: without a session it begins a new one, which then invents a status. The money it reports includes
the history of the session, so only the tokens are this probe's own.
"""

import json

from guard.probe.base import Call, Cli, ProbeCall, ProbeOutput, named
from guard.probe.output import count, events, inner, last, words

_MODEL = "sonnet"


def _call(asked: ProbeCall) -> Call:
    argv = [asked.program, "-p", asked.text, "--resume", asked.session]
    argv += ["--fork-session", "--no-session-persistence", "--tools", "", "--strict-mcp-config"]
    argv += ["--json-schema", json.dumps(asked.schema), "--output-format", "json"]
    argv += ["--settings", '{"disableAllHooks":true}', *asked.model("--model", _MODEL)]
    return Call(argv, asked.question.cwd, {**asked.environ, "DISABLE_AUTOUPDATER": "1"})


def _said(output: bytes) -> ProbeOutput:
    result = last(events(output), "result")
    usage = inner(result, "usage")
    tokens = count(*(value for name, value in usage.items() if name.endswith("_tokens")))
    if result.get("subtype") != "success" or result.get("is_error") is not False:
        return ProbeOutput(None, tokens)
    structured = result.get("structured_output")
    text = json.dumps(structured) if structured is not None else result.get("result")
    return ProbeOutput(words(text), tokens)


CLI = Cli(named("claude"), _call, _said)
