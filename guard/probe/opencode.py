"""OpenCode: a fork without tools; the prompt on stdin, because an argument would be quoted.

The agent `plan` alone would not edit, but run any command: so every tool is denied besides. The fork is stored among the user's
sessions: there is no way to have one that is not. Plugins stay on, because some log in.
"""

import re

from guard.core.base.agent_json import part_of
from guard.probe import base


def _call(probe: base.ProbeCall) -> base.Call:
    argv = [probe.program, "run", "--format", "json", "-s", probe.session, "--fork"]
    argv += ["--agent", "plan", *probe.model("-m")]
    environ = {
        **probe.environ,
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_PERMISSION": '{"*":"deny"}',
    }
    return base.Call(argv, probe.question.cwd, environ, probe.text.encode())


def _read_output(output: bytes) -> base.ProbeOutput:
    found = base.read_events(output)
    steps = [part_of(event, "part") for event in found if event.get("type") == "step_finish"]
    tokens = base.sum_counts(*(part_of(step, "tokens").get("total") for step in steps))
    cost = base.sum_dollars(step.get("cost") for step in steps)
    stopped = bool(steps) and steps[-1].get("reason") == "stop"
    failed = any(event.get("type") == "error" for event in found)
    text = base.encode_text(part_of(base.last_event(found, "text"), "part").get("text"))
    return base.ProbeOutput(text if stopped and not failed else None, tokens, cost)


CLI = base.Cli(
    base.fixed_program("opencode"),
    _call,
    _read_output,
    sessions=re.compile(r"ses_[A-Za-z0-9]{1,64}"),
)
