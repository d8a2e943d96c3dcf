"""`guard plan adopt`, `reset`, `retry`: take over what is done, begin anew, try a task again."""

import click

from guard.commands.options import print_change, records_plan
from guard.context.invocation import Invocation


@click.command("adopt")
@click.argument("tasks", metavar="[TASK...]", nargs=-1)
@records_plan
def adopt(guard: Invocation, tasks: tuple[str, ...], event_id: str | None, form: str) -> None:
    """Take over tasks that are done already: those named, or those with a ticked box or a commit of their own.

    They count as complete, and are recorded as adopted, not as audited. A commit with the trailer `Guard-Task: TASK`
    in the history of HEAD is the task's, and `guard rollback` can revert it. Exit code 1 if a named task is in progress
    or complete.
    """
    from guard.coordinator.restart import adopt as adopt_done

    print_change(guard, adopt_done(guard, tasks, event_id), form)


@click.command("reset")
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log.")
@records_plan
def reset(guard: Invocation, reason: str, event_id: str | None, form: str) -> None:
    """Begin the plan anew: forget what is done, asked and landed. Branches and commits stay as they are.

    Exit code 1 while agents are at work.
    """
    from guard.coordinator.restart import reset as begin_anew

    print_change(guard, begin_anew(guard, reason, event_id), form)


@click.command("retry")
@click.argument("task")
@records_plan
def retry(guard: Invocation, task: str, event_id: str | None, form: str) -> None:
    """Let a task that waits for a person be worked on again: close the questions about it, and forget its failures.

    Exit code 1 if the task is complete, or an agent is at work on it.
    """
    from guard.coordinator.restart import retry as try_again

    print_change(guard, try_again(guard, task, event_id), form)
