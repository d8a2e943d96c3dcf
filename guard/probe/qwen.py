"""Qwen Code: a fork in plan mode, without hooks, servers or extensions.

A fork is stored, and `--continue` would pick it; so it is made beside a copy of the session, in a runtime folder of its own.
Where the session is not found (a runtime folder that a settings file names), the fork stays among the user's sessions.
"""

import json

from guard.probe.base import Call, Cli, ProbeCall, ProbeOutput, named
from guard.probe.output import count, events, inner, last, words
from guard.probe.scratch import copied


def _call(asked: ProbeCall) -> Call:
    argv = [asked.program, asked.text, "-r", asked.session, "--fork-session", "--safe-mode"]
    argv += ["--approval-mode", "plan", "--json-schema", json.dumps(asked.schema), "-o", "json"]
    argv += asked.model("-m")
    return Call(argv, asked.question.cwd, {**asked.environ, **_runtime_folder(asked)})


def _runtime_folder(asked: ProbeCall) -> dict[str, str]:
    real = asked.home("QWEN_RUNTIME_DIR", ".qwen")
    for chat in real.glob(f"projects/*/chats/{asked.session}.jsonl"):
        copied(chat, asked.scratch / chat.relative_to(real))
        return {"QWEN_RUNTIME_DIR": str(asked.scratch)}
    return {}


def _said(output: bytes) -> ProbeOutput:
    found = events(output)
    result = last(found, "result")
    messages = [
        inner(event, "message", "usage") for event in found if event.get("type") == "assistant"
    ]
    tokens = count(*(usage.get("total_tokens") for usage in messages))
    if result.get("subtype") != "success" or result.get("is_error") is not False:
        return ProbeOutput(None, tokens)
    structured = result.get("structured_result")
    text = json.dumps(structured) if structured is not None else result.get("result")
    return ProbeOutput(words(text), tokens)


CLI = Cli(named("qwen"), _call, _said)
