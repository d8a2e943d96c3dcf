"""Copilot CLI: a copy of the session in a home and a folder of their own, because it has no fork and resuming appends.

The login is linked; hooks are off, and only tools that read are on offer (it takes an empty list of tools for all of them).
"""

import json

from guard.core.base.agent_json import part_of
from guard.probe import base
from guard.probe.scratch import copy_session, link_files, make_folder


def _call(probe: base.ProbeCall) -> base.Call:
    real, home = probe.home("COPILOT_HOME", ".copilot"), make_folder(probe.scratch / "home")
    session = real / "session-state" / probe.session
    if not session.is_dir():
        raise base.CannotAsk("no_session", f"there is no session {probe.session} in {real}")
    copy_session(session, home / "session-state" / probe.session)
    (home / "settings.json").write_text(json.dumps({"disableAllHooks": True}))
    link_files(real, home, "config.json")
    argv = [probe.program, "-p", probe.text, f"--resume={probe.session}", "--output-format", "json"]
    argv += ["--available-tools=view,grep", "--disable-builtin-mcps", *probe.model("--model")]
    environ = {**probe.environ, "COPILOT_HOME": str(home), "COPILOT_AUTO_UPDATE": "false"}
    return base.Call(argv, make_folder(probe.scratch / "folder"), environ)


def _read_output(output: bytes) -> base.ProbeOutput:
    found = base.read_events(output)
    if base.last_event(found, "result").get("exitCode") != 0:
        return base.ProbeOutput(None)
    message = part_of(base.last_event(found, "assistant.message"), "data")
    return base.ProbeOutput(base.encode_text(message.get("content")))


CLI = base.Cli(base.fixed_program("copilot"), _call, _read_output)
