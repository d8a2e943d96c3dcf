"""Codex: an ephemeral fork in a read-only sandbox, without hooks.

The sandbox stands before `fork`, which has no such option of its own. It does not bind tool servers (MCP), so each one that is
configured is switched off by its name. The usage that it reports is that of the whole thread, so what the probe itself cost is
not known.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from guard.probe.base import Call, CannotAsk, Cli, ProbeCall, ProbeOutput, named
from guard.probe.output import events, inner, last, words

_MOST_BYTES = 4 * 1024 * 1024
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def _servers(asked: ProbeCall) -> Iterator[str]:
    """The tool servers that the user's settings and the project's name; one that cannot be switched off is refused."""
    homes = (asked.home("CODEX_HOME", ".codex"), asked.question.cwd / ".codex")
    for file in (home / "config.toml" for home in homes):
        for name in _named_in(file):
            if not _PLAIN.fullmatch(name):
                raise CannotAsk("no_cli", f"{file}: the server {name!r} cannot be switched off")
            yield name


def _named_in(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            servers = tomllib.loads(opened.read(_MOST_BYTES).decode()).get("mcp_servers")
    except (OSError, ValueError):
        return []
    return list(servers) if isinstance(servers, dict) else []


def _call(asked: ProbeCall) -> Call:
    schema = asked.scratch / "schema.json"
    schema.write_text(json.dumps(asked.schema))
    argv = [asked.program, "exec", "--sandbox", "read-only", "fork", asked.session, "--json"]
    argv += ["--ephemeral", "--skip-git-repo-check", "-c", "features.hooks=false"]
    for server in sorted(set(_servers(asked))):
        argv += ["-c", f"mcp_servers.{server}.enabled=false"]
    argv += ["--output-schema", str(schema), *asked.model("--model"), asked.text]
    return Call(argv, asked.question.cwd, asked.environ)


def _said(output: bytes) -> ProbeOutput:
    found = events(output)
    ends = [event["type"] for event in found if str(event.get("type")).startswith("turn.")]
    if ends[-1:] != ["turn.completed"]:
        return ProbeOutput(None)
    items = [inner(event, "item") for event in found if event.get("type") == "item.completed"]
    return ProbeOutput(words(last(items, "agent_message").get("text")))


CLI = Cli(named("codex"), _call, _said)
