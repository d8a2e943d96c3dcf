"""A kill, a torn write or an error at every file system call: what was acknowledged is there, and the next command works."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faults import SCENARIOS, compiled, tried
from tests.support.series import times

POINTS_AT_LEAST = {
    "first append": 200,
    "one update": 200,
    "several updates": 800,
    "rotation": 600,
    "after a torn tail": 200,
    "rebuild": 350,
    "salvage": 700,
}

# Most of their calls are those of the shorter scenarios again: every third is tried here, each in the full series.
SPARSE = {"several updates": 3, "rotation": 3, "rebuild": 3, "salvage": 3}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)"),
]


@pytest.fixture
def fast_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(prefix="guard-faults-", dir=place) as folder:
        yield Path(folder)


@pytest.mark.series
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fault_at_every_call_loses_nothing_that_was_acknowledged(
    scenario: str, tmp_path: Path, fast_folder: Path
) -> None:
    every = times(SPARSE.get(scenario, 1), full=1)
    results = tried(scenario, compiled(tmp_path), fast_folder, every)
    print(f"\n{'mode':22} {'scenario':18} points  violations")
    for mode, result in results.items():
        print(f"{mode:22} {scenario:18} {result['points']:6}  {len(result['violations'])}")
    assert [f"{mode}: {it}" for mode in results for it in results[mode]["violations"]] == []
    assert (
        sum(result["points"] for result in results.values()) >= POINTS_AT_LEAST[scenario] // every
    )


def test_all_scenarios_together_have_a_thousand_fault_points() -> None:
    assert POINTS_AT_LEAST.keys() == SCENARIOS.keys()
    tried = (points // SPARSE.get(name, 1) for name, points in POINTS_AT_LEAST.items())
    assert sum(tried) >= 1000
