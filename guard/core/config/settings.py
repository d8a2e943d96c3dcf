"""All settings; each table stands in its room, and this module assembles them."""

from typing import Annotated

from pydantic import Field

from guard.core.activity.settings import ActivitySettings
from guard.core.agents.settings import RegistrySettings
from guard.core.base.fields import USERS, Section
from guard.core.breaker.settings import BreakerSettings
from guard.core.check.settings import CheckSettings
from guard.core.claims.settings import ClaimsSettings
from guard.core.coordinator.settings import CoordinatorSettings
from guard.core.hooks.settings import HooksSettings
from guard.core.log.settings import StoreSettings
from guard.core.rescue.settings import RescueSettings
from guard.core.resume.settings import ResumeSettings
from guard.core.run.settings import RunSettings
from guard.core.team.settings import TeamSettings


class Settings(Section):
    """All settings of guard."""

    # What is not set is as its table says, and needs no check: no table builds its validator for that.

    workspace: Annotated[str | None, Field(min_length=1, json_schema_extra=USERS)] = None
    """The folder for guard's state; by default one per repository below $XDG_STATE_HOME/guard."""
    completion_check: CheckSettings = CheckSettings.model_construct()
    run: RunSettings = RunSettings.model_construct()
    rescue: RescueSettings = RescueSettings.model_construct()
    breaker: BreakerSettings = BreakerSettings.model_construct()
    registry: RegistrySettings = RegistrySettings.model_construct()
    claims: ClaimsSettings = ClaimsSettings.model_construct()
    team: TeamSettings = TeamSettings.model_construct()
    hooks: HooksSettings = HooksSettings.model_construct()
    activity: ActivitySettings = ActivitySettings.model_construct()
    coordinator: CoordinatorSettings = CoordinatorSettings.model_construct()
    resume: ResumeSettings = ResumeSettings.model_construct()
    store: StoreSettings = StoreSettings.model_construct()
