"""Codex: an ephemeral fork in a read-only sandbox, without hooks.

The sandbox stands before `fork`, which has no such option of its own. The usage that it reports is that of the whole thread, so
what the probe itself cost is not known.
"""

import json

from guard.probe.interface import Asked, Call, Cli, Said, named
from guard.probe.output import events, inner, last, words


def _call(asked: Asked) -> Call:
    schema = asked.scratch / "schema.json"
    schema.write_text(json.dumps(asked.schema))
    argv = [asked.program, "exec", "--sandbox", "read-only", "fork", asked.session, "--json"]
    argv += ["--ephemeral", "--skip-git-repo-check", "-c", "features.hooks=false"]
    argv += ["--output-schema", str(schema), *asked.model("--model"), asked.text]
    return Call(argv, asked.question.cwd, asked.environ)


def _said(output: bytes) -> Said:
    found = events(output)
    ends = [event["type"] for event in found if str(event.get("type")).startswith("turn.")]
    if ends[-1:] != ["turn.completed"]:
        return Said(None)
    items = [inner(event, "item") for event in found if event.get("type") == "item.completed"]
    return Said(words(last(items, "agent_message").get("text")))


CLI = Cli(named("codex"), _call, _said)
