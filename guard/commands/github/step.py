"""`guard github prepare`, `step` and `publish`: the three parts of a step of guard's action."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from guard.commands.options import agent_options, check_options, max_time_option, ordered, terms
from guard.context.invocation import Invocation
from guard.core.github.report import STATUSES
from guard.errors import RepositoryProblem, WrongUsage

FAIL_ON = "timeout error blocked interrupted breaker_open fault"
_FROM_VARIABLES = {"auto_envvar_prefix": "GUARD_ACTION"}

_mode = click.option(
    "--mode",
    type=click.Choice(["run", "baseline", "check"]),
    default="run",
    show_default=True,
    help="Run a command; or begin before, and judge after, a step that somebody else runs.",
)


@click.command("prepare", context_settings=_FROM_VARIABLES)
@click.option("--state-key", default="", metavar="TEXT", help="What else tells this job's state.")
@click.pass_obj
def prepare(guard: Invocation, state_key: str) -> None:
    """Say under which key a cache may keep the state, as outputs of this step."""
    from guard.github.environment import Surroundings
    from guard.github.step_files import write_outputs

    job = Surroundings(guard.environ)
    general = job.cache_key(state_key, str(guard.repository.root))
    values = {
        "path": str(job.state),
        "restore": str(not job.state.exists()).lower(),
        "general-key": general,
        "key": f"{general}{job.run}-{secrets.token_hex(4)}",
    }
    write_outputs(job, values)


@click.command("step", context_settings=_FROM_VARIABLES)
@_mode
@click.option("--command", "script", metavar="SCRIPT", help="What to run, as a script for bash.")
@max_time_option("End the agent after S.")
@check_options
@agent_options
@click.pass_obj
def step(
    guard: Invocation,
    /,
    mode: Any,
    script: str | None,
    max_time: float | None,
    **told: Any,
) -> None:
    """Do what the step is for, and leave the result to `guard github publish`.

    Every option is also read from a variable: --max-probes from GUARD_ACTION_MAX_PROBES. While it runs, a runner obeys nothing
    that is printed. The exit code is 0 whatever came out.
    """
    from dataclasses import replace

    from guard.check.text import verdict_text
    from guard.github import modes
    from guard.github import publish as publishing
    from guard.github.environment import Surroundings
    from guard.github.step_files import emptied

    job = Surroundings(guard.environ)
    publishing.forget(job)
    if mode == "run" and not script:
        raise WrongUsage("there is nothing to run", "set `command`, or another `mode`")
    place = replace(
        guard, workspace_option=str(job.state), environ=job.for_the_agent(), repo=guard.repo
    )
    told.pop("report") if mode != "run" else None
    order = None
    if mode == "run":
        order, _ = ordered(modes.shell(script or ""), "text", told)
        asked = order.terms
        order = replace(order, max_seconds=max_time)
    else:
        told.pop("task"), told.pop("agent_id")
        asked = terms(told)
    with _deaf():
        report = modes.WorkflowStep(place, job, mode, asked, order).made()
        if changed := emptied(job.step_files):
            guard.output.warn(f"written to by the agent, and emptied: {', '.join(changed)}")
        publishing.keep(report, job)
        said = verdict_text(report.check) if report.check else f"{report.status}: {report.detail}"
        guard.output.result(said)


@contextmanager
def _deaf() -> Iterator[None]:
    """Nothing that is printed meanwhile is a command; the word that ends it is known to nobody before it is said."""
    from guard.core.github.escape import resuming, stopping

    token = f"guard-{secrets.token_hex(16)}"
    click.echo(stopping(token))
    sys.stdout.flush()
    try:
        yield
    finally:
        click.echo(resuming(token))


@click.command("publish", context_settings=_FROM_VARIABLES)
@_mode
@click.option(
    "--fail-on",
    default=FAIL_ON,
    show_default=True,
    metavar="WORDS",
    help=f"The statuses to fail at: {', '.join(STATUSES)}; or none.",
)
@click.option("--push-rescue", is_flag=True, help="Push what was rescued to a branch of its own.")
@click.option("--annotate/--no-annotate", default=True, help="Print lines that annotate the run.")
@click.pass_obj
def publish(guard: Invocation, mode: Any, fail_on: str, push_rescue: bool, annotate: bool) -> int:
    """Write outputs and summary of what `guard github step` found, and fail where that is asked for.

    The token for a push is GUARD_ACTION_TOKEN in the environment.
    """
    from guard.core.github.outcome import statuses_to_fail_on
    from guard.github import push as pushing
    from guard.github.environment import Surroundings
    from guard.github.publish import kept, place_in_checkout, publish

    wrong = None
    try:
        words = statuses_to_fail_on(fail_on)
    except ValueError as error:
        # The verdict is told all the same: the agent's work is done by now.
        words, wrong = frozenset(), WrongUsage(f"fail-on: {error}")
    job = Surroundings(guard.environ)
    report = kept(job, mode)
    token = guard.environ.get("GUARD_ACTION_TOKEN", "")
    try:
        repository = guard.repository
    except RepositoryProblem:
        repository = None
    push = pushing.push_rescue(repository, job, report.check, asked=push_rescue, token=token)
    if push.why in ("fork", "no_token", "refused"):
        guard.output.warn(f"what was rescued was not pushed: {push.detail}")
    code, lines = publish(report, push, job, words, place_in_checkout(repository, job))
    if annotate:
        for line in lines:
            click.echo(line)
    if wrong is not None:
        raise wrong
    return code
