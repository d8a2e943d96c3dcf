"""A look at the machine, the repository and the workspace: each check tells what it found and what to type next."""

from collections.abc import Callable, Iterator

from guard.context.invocation import Invocation
from guard.core.log.reports import DoctorCheck
from guard.doctor import machine, places
from guard.errors import GuardError
from guard.hooks.ingest import ingest_hooks
from guard.install.doctor import agent_hooks_health
from guard.install.git_doctor import git_hooks_health


def examine(guard: Invocation) -> Iterator[DoctorCheck]:
    """All checks, in the order in which a person would ask. A check that fails of itself is a problem, not an end."""
    checks: dict[str, Callable[[Invocation], Iterator[DoctorCheck]]] = {
        "python": machine.python,
        "git": machine.git_version,
        "repository": places.repository,
        "config": places.config,
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
