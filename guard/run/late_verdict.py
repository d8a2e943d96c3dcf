"""Keep what a verdict means for the registries and the plan while the server does not answer, and record it later, once.

These are shared with other machines, so it is decided when it is recorded: an agent that was given up meanwhile stays given up.
"""

import os

from guard.context.invocation import Invocation
from guard.core.agents.agent import BY_VERDICT, Agent
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.base.fields import Frozen
from guard.core.check.report import CheckReport
from guard.errors import GuardError, ServerLost
from guard.run.registry_entry import RegistryEntry, is_this_guard
from guard.system.private_files import Folder, close, try_lock

FOLDER = "verdicts.d"


class LateVerdict(Frozen):
    """A verdict that the registry of its agent does not have."""

    agent: Agent
    in_loop: bool
    report: CheckReport


def record_or_keep(entry: RegistryEntry, report: CheckReport) -> None:
    """Report the verdict to the registry, or keep it for the next guard of this machine."""
    try:
        entry.record_verdict(report)
    except ServerLost as error:
        path = _keep(entry, report)
        entry.guard.output.warn(
            f"{error.message}; what the verdict means for agent {entry.agent.agent_id} waits in {path}"
        )


def _keep(entry: RegistryEntry, report: CheckReport) -> str:
    late = LateVerdict(agent=entry.agent, in_loop=entry.in_loop, report=report)
    with Folder.make(entry.guard.workspace.path) as workspace:
        folder = workspace.child(FOLDER, create=True)
        assert folder is not None
        with folder:
            name = f"{report.run}-{report.iteration}-{entry.agent.task_id}-{entry.agent.agent_id}"
            name = f"{name[:200]}.json"
            folder.replace(name, late.model_dump_json(by_alias=True).encode(), durable=True)
            return folder.path_of(name)


def record_late_verdicts(guard: Invocation) -> None:
    """Record the verdicts that earlier runs of this machine have kept."""
    folder = Folder.open(guard.workspace.path / FOLDER)
    if folder is None:
        return
    with folder:
        for name in folder.names():
            if name.endswith(".json") and not name.startswith("."):
                _record_one(guard, folder, name)


def _record_one(guard: Invocation, folder: Folder, name: str) -> None:
    try:
        file = folder.open_file(name, os.O_RDWR)
    except FileNotFoundError:
        return  # Another guard has recorded it.
    try:
        # The one that holds the lock of a file that still has the name is the only one.
        if try_lock(file) and folder.is_same(file, name):
            late = LateVerdict.model_validate_json(folder.read(name) or b"")
            _record(guard, late)
            folder.remove(name)
    except ValueError as error:
        guard.output.warn(f"{folder.path_of(folder.set_aside(name))} is damaged: {error}")
    finally:
        close(file)


def _record(guard: Invocation, late: LateVerdict) -> None:
    if _is_recorded(guard, late):
        return
    # A loop that goes on keeps its agent; of any other, nothing is left at work.
    in_loop = late.in_loop and is_this_guard(late.agent.whereabouts)
    entry = RegistryEntry(guard, late.agent, in_loop)
    try:
        entry.record_verdict(late.report)
    except ServerLost:
        raise
    except GuardError as error:
        guard.output.warn(f"agent {late.agent.agent_id}: {error.message}")


def _is_recorded(guard: Invocation, late: LateVerdict) -> bool:
    """Tell whether a guard that was killed since has recorded it."""
    view, report = guard.store.view(AGENT_REGISTRY, late.agent.task_id), late.report
    known = view.agent(late.agent.agent_id) if view is not None else None
    if known is None or known.incarnation != late.agent.incarnation:
        return known is None
    is_of_it = (known.run, known.iteration) == (report.run, report.iteration)
    return is_of_it and known.status == BY_VERDICT.get(report.status, "working")
