"""Ask the agent's own session about its state, without disturbing it.

The session is always named: "the latest in this folder" may be another one, and where there is none a new one would begin and
invent an answer. A failure on the agent's side is a result, never an exception, and never "done".
"""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

from guard.core.classify import AGENTS
from guard.core.hooks.event_kinds import PROBE
from guard.core.probe.answer import ProbeResult
from guard.core.probe.report import ProbeReport
from guard.errors import Refused, WrongUsage
from guard.probe.attempt import ProbeAttempt
from guard.probe.base import Cli, ProbeQuestion

if TYPE_CHECKING:
    from guard.context.invocation import Invocation

_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@\[\]-]{0,127}")
_MOST_ATTEMPTS = 3


def ask(question: ProbeQuestion) -> ProbeResult:
    """Ask once; a service that is overloaded is asked again, within the time limit."""
    cli, began = _cli(question), monotonic()
    return _retry_overloaded(
        lambda: ProbeAttempt(cli, question, began).result(), question.time_limit
    )


def probe_session(
    guard: "Invocation", session: str | None, flags: Mapping[str, Any]
) -> ProbeReport:
    """Ask a session once, by the settings and these flags on top of them."""
    settings = guard.settings(None, flags).completion_check
    if not settings.agent:
        raise WrongUsage(
            "no agent to ask is known", "name it with --agent, or set completion_check.agent"
        )
    result = ask(
        ProbeQuestion(
            agent=settings.agent,
            cwd=guard.repository.root,
            time_limit=settings.probe_timeout_seconds,
            environ=guard.environ,
            now=guard.clock.now(),
            session=session,
            command=settings.probe_command or None,
            model=settings.probe_model or None,
        )
    )
    reading = result.answer.reading() if result.answer else None
    return ProbeReport(**dict(result), reading=reading)


def consult(question: ProbeQuestion) -> tuple[str | None, str]:
    """Ask about the question's topic; the answer in the agent's words, or None, and why there is none."""
    cli, began = _cli(question), monotonic()
    attempts: list[ProbeAttempt] = []

    def once() -> ProbeResult:
        attempts.append(ProbeAttempt(cli, question, began))
        return attempts[-1].result()

    result = _retry_overloaded(once, question.time_limit)
    return attempts[-1].words, f"{result.failure}: {result.detail}"


def _cli(question: ProbeQuestion) -> Cli:
    if question.environ.get(PROBE):
        raise Refused(
            "guard runs inside a probe, and does not start another",
            f"if this is not a probe, unset {PROBE}",
        )
    if question.agent not in AGENTS:
        raise WrongUsage(
            f"cannot ask an agent {question.agent!r}", f"name one of {', '.join(AGENTS)}"
        )
    if question.model and not _MODEL.fullmatch(question.model):
        raise WrongUsage(
            f"{question.model!r} is not the name of a model", "check completion_check.probe_model"
        )
    cli: Cli = import_module(f"guard.probe.{question.agent}").CLI
    return cli


def _retry_overloaded(attempt: Callable[[], ProbeResult], time_limit: float) -> ProbeResult:
    # The only retry policy: an overloaded or unreachable service, a second and then two later, while there is time.
    import tenacity

    def last_result(state: tenacity.RetryCallState) -> ProbeResult:
        assert state.outcome is not None
        result: ProbeResult = state.outcome.result()
        return result

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda result: result.failure == "overloaded"),
        wait=tenacity.wait_exponential(multiplier=1, max=8) + tenacity.wait_random(0, 0.5),
        stop=tenacity.stop_after_attempt(_MOST_ATTEMPTS) | tenacity.stop_before_delay(time_limit),
        retry_error_callback=last_result,
    )
    return retrying(attempt)
