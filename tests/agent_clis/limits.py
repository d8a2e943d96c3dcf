"""How the services say that a usage limit is reached, and when it ends."""

from datetime import datetime

from tests.support.agent_clis import AgentCli
from tests.support.model import Reply, refuse

SUBSCRIPTION = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"}
"""Claude Code tells a subscription's limits only to those who log in by token."""


def exhausted(agent: AgentCli, until: datetime) -> Reply:
    """The refusal that this agent's service sends."""
    return {"claude": five_hours, "codex": plan}[agent.name](until)


def five_hours(until: datetime) -> Reply:
    """Anthropic says it in headers."""
    stamp = str(int(until.timestamp()))
    told = {
        "status": "rejected",
        "reset": stamp,
        "representative-claim": "five_hour",
        "5h-status": "rejected",
        "5h-reset": stamp,
        "5h-utilization": "1.0",
    }
    headers = {f"anthropic-ratelimit-unified-{name}": value for name, value in told.items()}
    return refuse(429, "rate_limit_error", "This would exceed your rate limit.", headers=headers)


def plan(until: datetime) -> Reply:
    """OpenAI says it in the body."""
    text = "The usage limit has been reached"
    resets_at = int(until.timestamp())
    return refuse(429, "usage_limit_reached", text, plan_type="plus", resets_at=resets_at)
