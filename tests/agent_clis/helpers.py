"""How a scripted agent starts a helper in the background, and how it waits for one."""

import json
import re

from tests.support.agent_clis import AgentCli
from tests.support.model import Model, Reply, Step, call

_SPAWNED = re.compile(r"agent_id\W+([0-9a-f-]{36})")


def start(agent: AgentCli, task: str) -> Reply:
    """The agent gives a helper a task and goes on."""
    if agent.name == "codex":
        return call("multi_agent_v1.spawn_agent", message=task)
    return call(
        "Agent",
        description="the footer",
        subagent_type="general-purpose",
        prompt=task,
        run_in_background=True,
    )


def wait(model: Model) -> Step:
    """Codex waits for the helper that it has started; Claude Code does so by itself."""

    def step(prompt: str) -> Reply:
        found = _SPAWNED.findall(json.dumps(model.requests))
        assert found, "no helper was started"
        return call("multi_agent_v1.wait_agent", targets=[found[-1]], timeout_ms=60_000)

    return step
