"""`guard plan assess`, `analyst`, `expand`, `delegate`, `support`, `remediate`, `health`, `ask`, `answer`: help for tasks."""

from pathlib import Path
from typing import Any, get_args

import click

from guard.commands import options
from guard.context.ids import id_callback
from guard.context.invocation import Invocation
from guard.core.coordinator import decide_agents, decide_support
from guard.core.coordinator.event_base import Confidence
from guard.core.coordinator.requests import Request
from guard.core.plan.model import RequestType
from guard.errors import WrongUsage

_MOST_BYTES = 1 << 20


@click.command("assess")
@click.option(
    "--expand",
    "vague",
    multiple=True,
    metavar="TASK",
    help="A task that is too vague; may be repeated.",
)
@click.option("--auto", is_flag=True, help="Also those whose title has fewer than three words.")
@options.records_plan
def assess(
    guard: Invocation, vague: tuple[str, ...], auto: bool, event_id: str | None, form: str
) -> None:
    """Record which tasks must be expanded first; all others can be implemented as they are."""
    from guard.coordinator.plan import find_task_id
    from guard.coordinator.record import require_state

    found = decide_support.vague_tasks(require_state(guard)) if auto else ()
    named = (*(find_task_id(guard, task) for task in vague), *found)
    options.record_request(
        guard, decide_support.assess_tasks(needs_expansion=named), event_id, form
    )


@click.command("analyst")
@click.argument("task")
@options.plan_agent_option
@options.records_request
def analyst(task_id: str, agent_id: str) -> Request:
    """Give a vague task to an agent that expands it."""
    return decide_support.dispatch_analyst(task_id=task_id, agent_id=agent_id)


@click.command("expand")
@click.argument("task")
@options.plan_agent_option
@options.choice_option(
    "--confidence",
    among=get_args(Confidence),
    default="HIGH",
    text="The analyst's confidence; with LOW, guard passes its question to a person.",
)
@click.option(
    "--specification",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file with the expanded task, one JSON object.",
)
@click.option("--question", metavar="TEXT", help="With LOW: the question to answer first.")
@options.records_request
def expand(
    task_id: str,
    agent_id: str,
    confidence: Confidence,
    specification: Path | None,
    question: str | None,
) -> Request:
    """Record an analyst's result for a task: a specification, or a question."""
    if confidence == "LOW":
        if not question:
            raise WrongUsage("--confidence LOW needs a question", "give it with --question")
        return decide_support.ask_clarification(
            task_id=task_id, agent_id=agent_id, question=question
        )
    return decide_support.expand_task(
        task_id=task_id,
        agent_id=agent_id,
        confidence=confidence,
        specification=_object(specification) if specification is not None else {},
    )


def _object(path: Path) -> dict[str, Any]:
    from guard.core.base.json_text import loads

    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        found = loads(data) if len(data) <= _MOST_BYTES else None
    except (OSError, ValueError) as error:
        raise WrongUsage(f"{path}: {error}", "name a file with one JSON object") from None
    if not isinstance(found, dict):
        raise WrongUsage(
            f"{path} is not a JSON object of at most 1 MiB", "write one JSON object to the file"
        )
    return found


@click.command("delegate")
@click.argument("agent_id", metavar="AGENT", callback=id_callback("an agent id"))
@options.agent_id_option(
    "--from", "delegating_agent", required=True, text="The agent that asks for support."
)
@click.option(
    "--task",
    metavar="TASK",
    callback=lambda _context, _parameter, task: task or None,
    help="The task that the request is about.",
)
@options.choice_option(
    "--type",
    "request_type",
    among=get_args(RequestType),
    default="task",
    text="The kind of request.",
)
@click.argument("request_summary", metavar="SUMMARY")
@options.records_request
def delegate(**request: Any) -> Request:
    """Ask a supporting agent of the plan; guard queues the request while the agent is busy."""
    return decide_support.delegate_request(**request)


@click.command("support")
@click.argument("run_id", metavar="RUN", callback=id_callback("the id of a run"))
@click.argument("end", type=click.Choice(["done", "failed", "out-of-scope"]))
@options.choice_option(
    "--confidence",
    among=get_args(Confidence),
    default="MEDIUM",
    text="With `done`: the agent's confidence.",
)
@click.option(
    "--message", default="", metavar="TEXT", help="The result, or the reason of the failure."
)
@click.option("--suggest", metavar="ID", help="With `out-of-scope`: an agent that could do it.")
@options.records_request
def support(
    run_id: str, end: str, confidence: Confidence, message: str, suggest: str | None
) -> Request:
    """Record how a supporting agent ended; the next request in its queue begins."""
    if end == "done":
        return decide_support.complete_support(run_id=run_id, confidence=confidence, result=message)
    if end == "failed":
        return decide_support.fail_support(run_id=run_id, reason=message)
    return decide_support.decline_support(run_id=run_id, suggested=suggest, guidance=message)


@click.command("remediate")
@options.plan_agent_option
@click.option("--issue", metavar="TEXT", help="What is wrong; by default the known issue.")
@options.records_request
def remediate(agent_id: str, issue: str | None) -> Request:
    """Send an agent to repair the infrastructure; until it is healthy, guard gives out no task.

    Exit code 1 if such an agent is at work, or at the limit `coordinator.remediation_attempts`.
    """
    return decide_agents.dispatch_remediation(agent_id=agent_id, issue=issue)


@click.command("health")
@options.plan_agent_option
@click.option(
    "--verdict",
    required=True,
    type=click.Choice(["healthy", "unhealthy"]),
    help="The health of the infrastructure.",
)
@click.option("--issue", metavar="TEXT", help="What is wrong now.")
@options.records_request
def health(agent_id: str, verdict: str, issue: str | None) -> Request:
    """Record whether a blocked infrastructure is healthy again; at the limit of attempts guard asks a person."""
    if verdict == "unhealthy":
        return decide_agents.fail_health_audit(agent_id=agent_id, issue=issue)
    return decide_agents.pass_health_audit(agent_id=agent_id)


@click.command("ask")
@options.agent_id_option("--agent", "agent_id", text="The agent that waits for the answer.")
@click.argument("question")
@options.records_request
def ask(agent_id: str | None, question: str) -> Request:
    """Ask a person a question; until the answer guard gives out no new task."""
    return decide_agents.ask_question(agent_id=agent_id, question=question)


@click.command("answer")
@click.argument("question_id", metavar="QUESTION", callback=id_callback("a question id"))
@click.argument("response")
@options.records_request
def answer(question_id: str, response: str) -> Request:
    """Answer an open question; the outbox holds the answer for the agent that waits."""
    return decide_agents.answer_question(question_id=question_id, response=response)
