"""Gemini CLI: the session's file, read into a new session in a home and a folder of their own.

`--resume` is never used: it appends to the session, and a later clean-up can delete it. The new home has the user's login and
nothing else, so neither hooks, servers, extensions nor the settings of the project take part, and no tool is on offer. Keys
in a `.env` file of the project are therefore not seen.
"""

import json
import os
import re
from pathlib import Path

from guard.core.base.agent_json import part_of
from guard.probe import base
from guard.probe.scratch import link_files, make_folder

_LOGIN = ("oauth_creds.json", "google_accounts.json", "gemini-credentials.json", ".env")
_AUTH_TYPE = re.compile(rb'"selected(?:Auth)?Type"\s*:\s*"([a-z0-9-]{1,64})"')
_SETTINGS_BYTES, _HEAD_BYTES = 1024 * 1024, 64 * 1024


def _call(probe: base.ProbeCall) -> base.Call:
    real = probe.home("GEMINI_CLI_HOME", "") / ".gemini"
    chat = _chat(real, probe.session)
    home = probe.scratch / "home"
    own = make_folder(home / ".gemini")
    (own / "settings.json").write_text(json.dumps(_settings(real)))
    link_files(real, own, *_LOGIN)
    argv = [probe.program, "--session-file", str(chat), "--approval-mode", "plan", "-o", "json"]
    argv += [*probe.model("-m"), "-p", probe.text]
    environ = {"GEMINI_CLI_HOME": str(home), "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return base.Call(argv, make_folder(probe.scratch / "folder"), {**probe.environ, **environ})


def _chat(home: Path, session: str) -> Path:
    # A resumed session may have a second file, which is a stub.
    mark = re.compile(rb'"sessionId"\s*:\s*"%s"' % session.encode())
    chats = (
        path
        for path in home.glob(f"tmp/*/chats/session-*-{session[:8]}.json*")
        if path.is_file() and mark.search(_head(path, _HEAD_BYTES))
    )
    chosen = max(chats, key=lambda path: path.stat().st_size, default=None)
    if chosen is None:
        raise base.CannotAsk("no_session", f"there is no session {session} in {home}")
    return chosen


def _settings(home: Path) -> dict[str, object]:
    # The file may have comments, so it is searched rather than parsed.
    found = _AUTH_TYPE.search(_head(home / "settings.json", _SETTINGS_BYTES))
    security = {"security": {"auth": {"selectedType": found[1].decode()}}} if found else {}
    return {
        **security,
        "hooksConfig": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "tools": {"core": []},
    }


def _head(path: Path, length: int) -> bytes:
    if not path.is_file():
        return b""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(length)


def _read_output(output: bytes) -> base.ProbeOutput:
    document = next(iter(base.read_events(output)), {})
    models = part_of(document, "stats", "models")
    tokens = base.sum_counts(*(part_of(models, name, "tokens").get("total") for name in models))
    text = None if "error" in document else base.encode_text(document.get("response"))
    return base.ProbeOutput(text, tokens)


CLI = base.Cli(base.fixed_program("gemini"), _call, _read_output)
