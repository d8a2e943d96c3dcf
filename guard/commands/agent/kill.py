"""`guard agent kill`: end an agent, and say so in the registries."""

import click

from guard.commands.agent.options import named, tell
from guard.context.invocation import Invocation
from guard.context.output import format_option


@click.command("kill")
@named
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded.")
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    metavar="SECONDS",
    help="How long it may take to end before it is forced; by default `registry.kill_grace_seconds`.",
)
@format_option
@click.pass_obj
def kill(
    guard: Invocation, task_id: str, agent_id: str, reason: str, grace: float | None, form: str
) -> None:
    """End an agent: its tmux session or process is asked, then forced, and its end is seen before it is recorded.

    Refused (exit code 1) where the process is not provably the agent's: then nothing is ended and nothing recorded.
    """
    from guard.agents.kill import kill_agent

    tell(guard, kill_agent(guard, task_id, agent_id, reason, grace), form)
