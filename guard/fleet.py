"""Look over all workspaces of the database that this one is kept in: agents, runs and breakers of all machines."""

from guard.context.invocation import Invocation
from guard.context.lease import is_running
from guard.core.agents.registry import GLOBAL_REGISTRY, GlobalRegistry
from guard.core.breaker.state import BREAKER
from guard.core.fleet.report import (
    FleetAgent,
    FleetBreaker,
    FleetReport,
    FleetRun,
    FleetWorkspace,
    fleet_agent,
    fleet_breaker,
    fleet_run,
)
from guard.core.iteration.run import RUN, Run
from guard.errors import GuardError, WrongUsage
from guard.store import WorkspaceStore


def look_over_fleet(guard: Invocation) -> FleetReport:
    if guard.workspace.server is None:
        raise WrongUsage(
            "a fleet has its state in PostgreSQL, and this workspace is a folder",
            "set GUARD_WORKSPACE=postgresql://USER@HOST/DATABASE",
        )
    workspaces: list[FleetWorkspace] = []
    agents: list[FleetAgent] = []
    runs: list[FleetRun] = []
    breakers: list[FleetBreaker] = []
    warnings: list[str] = []
    for name, records, store in guard.fleet_stores():
        try:
            overall = store.view(GLOBAL_REGISTRY)
            workspaces.append(_workspace(name, records, overall))
            agents += [fleet_agent(name, agent) for agent in overall.agents] if overall else []
            for run in store.views(RUN).values():
                line = fleet_run(name, run, is_watched=_is_watched(run, store))
                runs += [line] if line is not None else []
            for breaker in store.views(BREAKER).values():
                found = fleet_breaker(name, breaker)
                breakers += [found] if found is not None else []
        except GuardError as error:
            warnings.append(f"{name}: {error.message}")
    return FleetReport(
        workspaces=tuple(workspaces),
        agents=tuple(agents),
        runs=tuple(runs),
        breakers=tuple(breakers),
        warnings=tuple(warnings),
    )


def _workspace(name: str, records: int, overall: GlobalRegistry | None) -> FleetWorkspace:
    return FleetWorkspace(
        name=name,
        records=records,
        active_agents=overall.active_agents if overall else 0,
        completed_agents=overall.completed_agents if overall else 0,
        total_agents_spawned=overall.total_agents_spawned if overall else 0,
    )


def _is_watched(run: Run, store: WorkspaceStore) -> bool:
    opened = run.open_iteration
    watch = opened.supervisor if opened is not None else None
    if watch is None:
        return False
    return is_running(watch, store)
