"""The limits of an agent: which program gets which."""

from math import inf

import pytest

from guard.core.run.settings import RunSettings
from guard.run.agent_watch import RunLimits

LIMITS: dict[str, tuple[RunSettings, bool, RunLimits]] = {
    "a local CLI": (RunSettings(), True, RunLimits(inf, 3600, 1800)),
    "another program": (RunSettings(), False, RunLimits(inf, 21600, inf)),
    "another program, by the setting": (
        RunSettings(max_idle_seconds=3600), False, RunLimits(inf, 3600, inf)),
    "a local CLI, by the settings": (
        RunSettings(max_idle_seconds=7, max_silence_seconds=5, max_seconds=9), True,
        RunLimits(9, 7, 5)),
    "a local CLI without limits": (
        RunSettings(max_idle_seconds=0, max_silence_seconds=0), True, RunLimits(inf, inf, inf)),
    "another program without limits": (
        RunSettings(max_idle_seconds=0), False, RunLimits(inf, inf, inf)),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "is_local", "expected"), LIMITS.values(), ids=LIMITS)
def test_limits(settings: RunSettings, is_local: bool, expected: RunLimits) -> None:
    assert RunLimits.of(settings, None, is_local) == expected


def test_the_order_may_give_less_time() -> None:
    assert RunLimits.of(RunSettings(max_seconds=9), 4, False).seconds == 4
    assert RunLimits.of(RunSettings(), 4, False).seconds == 4
