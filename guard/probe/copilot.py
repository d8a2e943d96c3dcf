"""Copilot CLI: a copy of the session in a home and a folder of their own, because it has no fork and resuming appends.

The login is linked; hooks are off, and only tools that read are on offer (it takes an empty list of tools for all of them).
"""

import json

from guard.probe.base import Call, CannotAsk, Cli, ProbeCall, ProbeOutput, named
from guard.probe.output import events, inner, last, words
from guard.probe.scratch import copied, folder, linked


def _call(asked: ProbeCall) -> Call:
    real, home = asked.home("COPILOT_HOME", ".copilot"), folder(asked.scratch / "home")
    session = real / "session-state" / asked.session
    if not session.is_dir():
        raise CannotAsk("no_session", f"there is no session {asked.session} in {real}")
    copied(session, home / "session-state" / asked.session)
    (home / "settings.json").write_text(json.dumps({"disableAllHooks": True}))
    linked(real, home, "config.json")
    argv = [asked.program, "-p", asked.text, f"--resume={asked.session}", "--output-format", "json"]
    argv += ["--available-tools=view,grep", "--disable-builtin-mcps", *asked.model("--model")]
    environ = {**asked.environ, "COPILOT_HOME": str(home), "COPILOT_AUTO_UPDATE": "false"}
    return Call(argv, folder(asked.scratch / "folder"), environ)


def _said(output: bytes) -> ProbeOutput:
    found = events(output)
    if last(found, "result").get("exitCode") != 0:
        return ProbeOutput(None)
    return ProbeOutput(words(inner(last(found, "assistant.message"), "data").get("content")))


CLI = Cli(named("copilot"), _call, _said)
