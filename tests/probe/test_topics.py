"""Another question than the one about the session's state: each CLI is asked it as it stands, and its words come back."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from guard.core.classify import AGENTS
from guard.core.rescue.agent_plan import PLAN_SCHEMA, planning_prompt, read_plan
from guard.core.rescue.groups import Changed
from guard.probe import consult
from guard.probe.base import ProbeQuestion, Topic
from tests.probe.standin import NOW, OPENCODE_SESSION, SESSION
from tests.probe.test_clis import sessions
from tests.support import write

CHANGES = [Changed("A", b"a.py"), Changed("M", b"b.py")]
PROMPT = planning_prompt(CHANGES) or ""
PLAN = {"commits": [{"message": "feat: both", "paths": ["a.py", "b.py"]}]}
_PROGRAM = """#!/usr/bin/env python3
import json, os, sys
given = sys.stdin.read() if not sys.stdin.isatty() else ""
files = [word for word in sys.argv if word.endswith("schema.json")]
schema = open(files[0]).read() if files else ""
with open({log!r}, "w") as file:
    json.dump(dict(argv=sys.argv[1:], stdin=given, schema=schema), file)
plan = {plan!r}
text = json.dumps(plan)
{body}
"""
SAYS = {
    "claude": 'print(json.dumps(dict(type="result", subtype="success", is_error=False, result="", structured_output=plan)))',
    "codex": """
print(json.dumps(dict(type="item.completed", item=dict(type="agent_message", text=text))))
print(json.dumps(dict(type="turn.completed")))""",
    "gemini": 'print(json.dumps(dict(response="Sure:\\n```json\\n" + text + "\\n```")))',
    "qwen": 'print(json.dumps([dict(type="result", subtype="success", is_error=False, structured_result=plan)]))',
    "opencode": """
print(json.dumps(dict(type="text", part=dict(text=text))))
print(json.dumps(dict(type="step_finish", part=dict(reason="stop"))))""",
    "copilot": """
print(json.dumps(dict(type="assistant.message", data=dict(content=text))))
print(json.dumps(dict(type="result", exitCode=0)))""",
    "command": "print(text)",
}
TAKES_A_SCHEMA = ("claude", "codex", "qwen")


def asked(tmp_path: Path, agent: str, session: str | None) -> tuple[str | None, str]:
    program = write(
        tmp_path / "bin" / agent,
        _PROGRAM.format(log=str(tmp_path / "log"), plan=PLAN, body=SAYS[agent]),
    )
    program.chmod(0o755)
    (tmp_path / "tree").mkdir()
    return consult(
        ProbeQuestion(
            agent=agent,
            cwd=tmp_path / "tree",
            time_limit=90,
            environ={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
            now=NOW,
            session=session,
            command=str(program) if agent == "command" else None,
            topic=Topic(PROMPT, PLAN_SCHEMA),
        )
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_a_plan(agent: str, home: Path, tmp_path: Path) -> None:
    sessions(home)
    words, detail = asked(tmp_path, agent, OPENCODE_SESSION if agent == "opencode" else SESSION)
    assert words is not None, detail
    plan = read_plan(words, CHANGES)
    assert isinstance(plan, list)
    (group,) = plan
    assert (group.subject, list(group.changes)) == ("feat: both", CHANGES)
    called: dict[str, Any] = json.loads((tmp_path / "log").read_text())
    assert [*called["argv"], called["stdin"]].count(PROMPT) == 1
    schemas = [*called["argv"], called["schema"]]
    assert (json.dumps(PLAN_SCHEMA) in schemas) == (agent in TAKES_A_SCHEMA)
    assert "--continue" not in called["argv"]


@pytest.mark.parametrize("agent", AGENTS)
def test_without_a_session_only_a_program_that_needs_none_is_asked(
    agent: str, home: Path, tmp_path: Path
) -> None:
    sessions(home)
    words, detail = asked(tmp_path, agent, None)
    assert (words is not None) == (agent == "command")
    if agent != "command":
        assert detail == "no_session: no session of this agent is known"
        assert not (tmp_path / "log").exists()
