"""A look at the machine, the repository and the workspace: each check tells what it found and what to type next."""

from collections.abc import Callable, Iterator

from guard.agent_hooks.folding import fold
from guard.core.reports.state import DoctorCheck
from guard.doctor import machine, places
from guard.errors import GuardError
from guard.installing.examined import agent_hooks
from guard.installing.git_examined import git_hooks
from guard.invocation import Invocation


def examine(guard: Invocation) -> Iterator[DoctorCheck]:
    """All checks, in the order in which a person would ask. A check that fails of itself is a problem, not an end."""
    checks: dict[str, Callable[[Invocation], Iterator[DoctorCheck]]] = {
        "python": machine.python,
        "git": machine.git_version,
        "repository": places.repository,
        "config": places.config,
        "workspace": places.workspace,
        "state": places.state,
        "git hooks": git_hooks,
        "agent hooks": agent_hooks,
        "agent CLIs": machine.programs,
        "collectors": machine.collectors,
        "clock": machine.clock,
    }
    fold(guard)
    for name, look in checks.items():
        try:
            yield from look(guard)
        except GuardError as error:
            yield DoctorCheck.of(name, "problem", error.message, error.hint)
