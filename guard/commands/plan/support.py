"""`guard plan assess`, `analyst`, `expand`, `delegate`, `support`, `remediate`, `health`, `ask`, `answer`: help for tasks."""

from pathlib import Path
from typing import Any, cast, get_args

import click

from guard.commands.options import agent_id_option, plan_agent_option, record_request, records_plan
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
@records_plan
def assess(guard: Invocation, vague: tuple[str, ...], event_id: str | None, form: str) -> None:
    """Record which tasks must be expanded first; all others can be implemented as they are."""
    from guard.coordinator.plan import find_task_id

    named = tuple(find_task_id(guard, one) for one in vague)
    record_request(guard, decide_support.assess_tasks(needs_expansion=named), event_id, form)


@click.command("analyst")
@click.argument("task")
@plan_agent_option
@records_plan
def analyst(guard: Invocation, task: str, agent_id: str, event_id: str | None, form: str) -> None:
    """Give a vague task to an agent that expands it."""
    from guard.coordinator.plan import find_task_id

    request = decide_support.dispatch_analyst(task_id=find_task_id(guard, task), agent_id=agent_id)
    record_request(guard, request, event_id, form)


@click.command("expand")
@click.argument("task")
@plan_agent_option
@click.option(
    "--confidence",
    type=click.Choice(get_args(Confidence)),
    default="HIGH",
    show_default=True,
    help="The analyst's confidence; with LOW, guard passes its question to a person.",
)
@click.option(
    "--specification",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file with the expanded task, one JSON object.",
)
@click.option("--question", metavar="TEXT", help="With LOW: the question to answer first.")
@records_plan
def expand(
    guard: Invocation,
    task: str,
    agent_id: str,
    confidence: str,
    specification: Path | None,
    question: str | None,
    event_id: str | None,
    form: str,
) -> None:
    """Record an analyst's result for a task: a specification, or a question."""
    from guard.coordinator.plan import find_task_id

    names: dict[str, Any] = {"task_id": find_task_id(guard, task), "agent_id": agent_id}
    request: Request
    if confidence == "LOW":
        if not question:
            raise WrongUsage("--confidence LOW needs a question", "give it with --question")
        request = decide_support.ask_clarification(**names, question=question)
    else:
        told = _object(specification) if specification is not None else {}
        sure = cast(Any, confidence)
        request = decide_support.expand_task(**names, confidence=sure, specification=told)
    record_request(guard, request, event_id, form)


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
@click.argument("agent", callback=id_callback("an agent id"))
@agent_id_option(
    "--from", "delegating_agent", required=True, text="The agent that asks for support."
)
@click.option("--task", metavar="TASK", help="The task that the request is about.")
@click.option(
    "--type",
    "request_type",
    type=click.Choice(get_args(RequestType)),
    default="task",
    show_default=True,
    help="The kind of request.",
)
@click.argument("summary")
@records_plan
def delegate(
    guard: Invocation,
    agent: str,
    delegating_agent: str,
    task: str | None,
    request_type: str,
    summary: str,
    event_id: str | None,
    form: str,
) -> None:
    """Ask a supporting agent of the plan; guard queues the request while the agent is busy."""
    from guard.coordinator.plan import find_task_id

    request = decide_support.delegate_request(
        agent_id=agent,
        delegating_agent=delegating_agent,
        task_id=find_task_id(guard, task) if task else None,
        request_type=cast(RequestType, request_type),
        request_summary=summary,
    )
    record_request(guard, request, event_id, form)


@click.command("support")
@click.argument("run_id", metavar="RUN", callback=id_callback("the id of a run"))
@click.argument("end", type=click.Choice(["done", "failed", "out-of-scope"]))
@click.option(
    "--confidence",
    type=click.Choice(get_args(Confidence)),
    default="MEDIUM",
    show_default=True,
    help="With `done`: the agent's confidence.",
)
@click.option(
    "--message", default="", metavar="TEXT", help="The result, or the reason of the failure."
)
@click.option("--suggest", metavar="ID", help="With `out-of-scope`: an agent that could do it.")
@records_plan
def support(
    guard: Invocation,
    run_id: str,
    end: str,
    confidence: str,
    message: str,
    suggest: str | None,
    event_id: str | None,
    form: str,
) -> None:
    """Record how a supporting agent ended; the next request in its queue begins."""
    request: Request
    if end == "done":
        sure = cast(Confidence, confidence)
        request = decide_support.complete_support(run_id=run_id, confidence=sure, result=message)
    elif end == "failed":
        request = decide_support.fail_support(run_id=run_id, reason=message)
    else:
        request = decide_support.decline_support(run_id=run_id, suggested=suggest, guidance=message)
    record_request(guard, request, event_id, form)


@click.command("remediate")
@plan_agent_option
@click.option("--issue", metavar="TEXT", help="What is wrong; by default the known issue.")
@records_plan
def remediate(
    guard: Invocation, agent_id: str, issue: str | None, event_id: str | None, form: str
) -> None:
    """Send an agent to repair the infrastructure; until it is healthy, guard gives out no task.

    Exit code 1 if such an agent is at work, or at the limit `coordinator.remediation_attempts`.
    """
    record_request(
        guard, decide_agents.dispatch_remediation(agent_id=agent_id, issue=issue), event_id, form
    )


@click.command("health")
@plan_agent_option
@click.option(
    "--verdict",
    required=True,
    type=click.Choice(["healthy", "unhealthy"]),
    help="The health of the infrastructure.",
)
@click.option("--issue", metavar="TEXT", help="What is wrong now.")
@records_plan
def health(
    guard: Invocation,
    agent_id: str,
    verdict: str,
    issue: str | None,
    event_id: str | None,
    form: str,
) -> None:
    """Record whether a blocked infrastructure is healthy again; at the limit of attempts guard asks a person."""
    request: Request = decide_agents.pass_health_audit(agent_id=agent_id)
    if verdict == "unhealthy":
        request = decide_agents.fail_health_audit(agent_id=agent_id, issue=issue)
    record_request(guard, request, event_id, form)


@click.command("ask")
@agent_id_option("--agent", "agent_id", text="The agent that waits for the answer.")
@click.argument("question")
@records_plan
def ask(
    guard: Invocation, agent_id: str | None, question: str, event_id: str | None, form: str
) -> None:
    """Ask a person a question; until the answer guard gives out no new task."""
    record_request(
        guard, decide_agents.ask_question(agent_id=agent_id, question=question), event_id, form
    )


@click.command("answer")
@click.argument("question_id", metavar="QUESTION", callback=id_callback("a question id"))
@click.argument("response")
@records_plan
def answer(
    guard: Invocation, question_id: str, response: str, event_id: str | None, form: str
) -> None:
    """Answer an open question; the outbox holds the answer for the agent that waits."""
    record_request(
        guard,
        decide_agents.answer_question(question_id=question_id, response=response),
        event_id,
        form,
    )
