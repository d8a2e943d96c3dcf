"""Check the machine, the repository and the workspace; each check prints its finding and the next command."""

from collections.abc import Callable, Iterator

from guard.context.invocation import Invocation
from guard.core.log.reports import DoctorCheck
from guard.doctor import machine, places
from guard.errors import GuardError
from guard.hooks.ingest import ingest_hooks
from guard.install.doctor import agent_hooks_health
from guard.install.git_doctor import git_hooks_health


def examine(guard: Invocation) -> Iterator[DoctorCheck]:
    """Yield all checks in order; an error inside a check is reported as a problem."""
    checks: dict[str, Callable[[Invocation], Iterator[DoctorCheck]]] = {
        "python": machine.python,
        "git": machine.git_version,
        "repository": places.repository,
        "config": places.config,
        "trust": places.trust,
        "workspace": places.workspace,
        "state": places.state,
        "git hooks": git_hooks_health,
        "agent hooks": agent_hooks_health,
        "agent CLIs": machine.programs,
        "collectors": machine.collectors,
        "clock": machine.clock,
    }
    ingest_hooks(guard)
    for name, look in checks.items():
        try:
            yield from look(guard)
        except GuardError as error:
            yield DoctorCheck.of(name, "problem", error.message, error.hint)
