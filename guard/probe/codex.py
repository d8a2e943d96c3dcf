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

from guard.core.base.agent_json import part_of
from guard.probe import base

_MOST_BYTES = 4 * 1024 * 1024
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def _servers(probe: base.ProbeCall) -> Iterator[str]:
    # The tool servers of the user's settings and the project's; one that cannot be switched off is refused.
    homes = (probe.home("CODEX_HOME", ".codex"), probe.question.cwd / ".codex")
    for file in (home / "config.toml" for home in homes):
        for name in _server_names(file):
            if not _PLAIN.fullmatch(name):
                raise base.CannotAsk(
                    "no_cli", f"{file}: the server {name!r} cannot be switched off"
                )
            yield name


def _server_names(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            servers = tomllib.loads(opened.read(_MOST_BYTES).decode()).get("mcp_servers")
    except (OSError, ValueError):
        return []
    return list(servers) if isinstance(servers, dict) else []


def _call(probe: base.ProbeCall) -> base.Call:
    schema = probe.scratch / "schema.json"
    schema.write_text(json.dumps(probe.schema))
    argv = [probe.program, "exec", "--sandbox", "read-only", "fork", probe.session, "--json"]
    argv += ["--ephemeral", "--skip-git-repo-check", "-c", "features.hooks=false"]
    for server in sorted(set(_servers(probe))):
        argv += ["-c", f"mcp_servers.{server}.enabled=false"]
    argv += ["--output-schema", str(schema), *probe.model("--model"), probe.text]
    return base.Call(argv, probe.question.cwd, probe.environ)


def _read_output(output: bytes) -> base.ProbeOutput:
    found = base.read_events(output)
    ends = [event["type"] for event in found if str(event.get("type")).startswith("turn.")]
    if ends[-1:] != ["turn.completed"]:
        return base.ProbeOutput(None)
    items = [part_of(event, "item") for event in found if event.get("type") == "item.completed"]
    return base.ProbeOutput(base.encode_text(base.last_event(items, "agent_message").get("text")))


CLI = base.Cli(base.fixed_program("codex"), _call, _read_output)
