"""The next task of the plan for an agent that is brought back: claimed for it, or only shown."""

from guard.core.agents import Agent
from guard.core.resuming.evidence import NextTask
from guard.invocation import Invocation


def next_task(_guard: Invocation, _agent: Agent, *, claims: bool) -> NextTask | None:  # noqa: ARG001
    """None where there is no plan, or nothing in it that is free."""
    return None
