"""OpenCode: a fork without tools; the prompt on stdin, because an argument would be quoted.

The agent `plan` alone would not edit, but run any command: so every tool is denied besides. The fork is stored among the user's
sessions: there is no way to have one that is not. Plugins stay on, because some log in.
"""

import re

from guard.probe.base import Call, Cli, ProbeCall, ProbeOutput, named
from guard.probe.output import count, dollars, events, inner, last, words


def _call(asked: ProbeCall) -> Call:
    argv = [asked.program, "run", "--format", "json", "-s", asked.session, "--fork"]
    argv += ["--agent", "plan", *asked.model("-m")]
    environ = {
        **asked.environ,
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_PERMISSION": '{"*":"deny"}',
    }
    return Call(argv, asked.question.cwd, environ, asked.text.encode())


def _said(output: bytes) -> ProbeOutput:
    found = events(output)
    steps = [inner(event, "part") for event in found if event.get("type") == "step_finish"]
    tokens = count(*(inner(step, "tokens").get("total") for step in steps))
    cost = dollars(step.get("cost") for step in steps)
    stopped = bool(steps) and steps[-1].get("reason") == "stop"
    failed = any(event.get("type") == "error" for event in found)
    text = words(inner(last(found, "text"), "part").get("text"))
    return ProbeOutput(text if stopped and not failed else None, tokens, cost)


CLI = Cli(named("opencode"), _call, _said, sessions=re.compile(r"ses_[A-Za-z0-9]{1,64}"))
