"""All settings; each table stands in its room, and is loaded when it is first asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from guard.core.activity.settings import ActivitySettings
    from guard.core.agents.settings import RegistrySettings
    from guard.core.base.fields import Section
    from guard.core.breaker.settings import BreakerSettings
    from guard.core.check.settings import CheckSettings
    from guard.core.claims.settings import ClaimsSettings
    from guard.core.coordinator.settings import CoordinatorSettings
    from guard.core.cost.settings import CostSettings
    from guard.core.fleet.settings import FleetSettings
    from guard.core.hooks.settings import HooksSettings
    from guard.core.landing.settings import LandingSettings
    from guard.core.log.settings import StoreSettings, TopSettings
    from guard.core.notify.settings import NotifySettings
    from guard.core.plan.settings import PlanSettings
    from guard.core.prove.settings import ProveSettings
    from guard.core.rescue.settings import RescueSettings
    from guard.core.resume.settings import ResumeSettings
    from guard.core.run.settings import RunSettings
    from guard.core.team.settings import TeamSettings

TOP = ""
"""The table of the keys that stand outside all tables."""
TABLES = {
    TOP: ("log", "TopSettings"),
    "completion_check": ("check", "CheckSettings"),
    "run": ("run", "RunSettings"),
    "notify": ("notify", "NotifySettings"),
    "prove": ("prove", "ProveSettings"),
    "cost": ("cost", "CostSettings"),
    "rescue": ("rescue", "RescueSettings"),
    "breaker": ("breaker", "BreakerSettings"),
    "registry": ("agents", "RegistrySettings"),
    "claims": ("claims", "ClaimsSettings"),
    "team": ("team", "TeamSettings"),
    "hooks": ("hooks", "HooksSettings"),
    "activity": ("activity", "ActivitySettings"),
    "coordinator": ("coordinator", "CoordinatorSettings"),
    "landing": ("landing", "LandingSettings"),
    "plan": ("plan", "PlanSettings"),
    "resume": ("resume", "ResumeSettings"),
    "store": ("log", "StoreSettings"),
    "fleet": ("fleet", "FleetSettings"),
}
"""The room and the class of each table, in the order of the documentation."""


def load_table(name: str) -> "type[Section]":
    room, table = TABLES[name]
    loaded: type[Section] = getattr(import_module(f"guard.core.{room}.settings"), table)
    return loaded


class Settings:
    """All settings of guard."""

    # A command asks for few tables, and most users set few keys: so a table of which nothing is set costs nothing until a
    # command asks for it, and needs no check even then.

    if TYPE_CHECKING:
        completion_check: CheckSettings
        run: RunSettings
        notify: NotifySettings
        prove: ProveSettings
        cost: CostSettings
        rescue: RescueSettings
        breaker: BreakerSettings
        registry: RegistrySettings
        claims: ClaimsSettings
        team: TeamSettings
        hooks: HooksSettings
        activity: ActivitySettings
        coordinator: CoordinatorSettings
        landing: LandingSettings
        plan: PlanSettings
        resume: ResumeSettings
        store: StoreSettings
        fleet: FleetSettings

    def __init__(self, values: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Take the values of each table; they are checked."""
        self._given = {
            name: load_table(name).model_validate(table) for name, table in (values or {}).items()
        }

    def __getattr__(self, name: str) -> "Section":
        if name == TOP or name not in TABLES:
            raise AttributeError(f"there is no table {name!r}")
        table = self._given.get(name)
        if table is None:
            table = self._given[name] = load_table(name).model_construct()
        return table

    @property
    def workspace(self) -> str | None:
        """The folder for guard's state that the user named."""
        top = cast("TopSettings | None", self._given.get(TOP))
        return top.workspace if top is not None else None
