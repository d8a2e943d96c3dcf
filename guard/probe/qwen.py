"""Qwen Code: a fork in plan mode, without hooks, servers or extensions.

A fork is stored, and `--continue` would pick it; so it is made beside a copy of the session, in a runtime folder of its own.
Where the session is not found (a runtime folder that a settings file names), the fork stays among the user's sessions.
"""

import json

from guard.probe import base
from guard.probe.scratch import copy_session


def _call(probe: base.ProbeCall) -> base.Call:
    argv = [probe.program, probe.text, "-r", probe.session, "--fork-session", "--safe-mode"]
    argv += ["--approval-mode", "plan", "--json-schema", json.dumps(probe.schema), "-o", "json"]
    argv += probe.model("-m")
    return base.Call(argv, probe.question.cwd, {**probe.environ, **_runtime_folder(probe)})


def _runtime_folder(probe: base.ProbeCall) -> dict[str, str]:
    real = probe.home("QWEN_RUNTIME_DIR", ".qwen")
    for chat in real.glob(f"projects/*/chats/{probe.session}.jsonl"):
        copy_session(chat, probe.scratch / chat.relative_to(real))
        return {"QWEN_RUNTIME_DIR": str(probe.scratch)}
    return {}


def _read_output(output: bytes) -> base.ProbeOutput:
    found = base.read_events(output)
    result = base.last_event(found, "result")
    messages = [
        base.inner_object(event, "message", "usage")
        for event in found
        if event.get("type") == "assistant"
    ]
    tokens = base.sum_counts(*(usage.get("total_tokens") for usage in messages))
    if result.get("subtype") != "success" or result.get("is_error") is not False:
        return base.ProbeOutput(None, tokens)
    structured = result.get("structured_result")
    text = json.dumps(structured) if structured is not None else result.get("result")
    return base.ProbeOutput(base.encode_text(text), tokens)


CLI = base.Cli(base.fixed_program("qwen"), _call, _read_output)
