"""Qwen Code: a fork in plan mode, without hooks, servers or extensions.

A fork is stored, and `--continue` would pick it; so it is made beside a copy of the session, in a runtime folder of its own.
Where the session is not found (a runtime folder that a settings file names), the fork stays among the user's sessions.
"""

import json

from guard.core.base.agent_json import part_of
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
    messages = (event for event in found if event.get("type") == "assistant")
    usages = (part_of(message, "message", "usage") for message in messages)
    tokens = base.sum_counts(*(usage.get("total_tokens") for usage in usages))
    return base.read_result(result, "structured_result", tokens)


CLI = base.Cli(base.fixed_program("qwen"), _call, _read_output)
