"""Work told from wake-ups, by two looks at what a process has done."""

import pytest

from guard.system.process_work import LEAST_OWN_BYTES, WorkCounts, has_worked

SOME = WorkCounts(10.0, 5000, 5000)


@pytest.mark.parametrize(
    ("after", "seconds", "least", "expected"),
    [
        (SOME, 30, 1, False),
        (SOME._replace(cpu_seconds=10.04), 0.3, 1, False),
        (SOME._replace(cpu_seconds=10.1), 0.3, 1, True),
        (SOME._replace(cpu_seconds=10.5), 30, 1, False),
        (SOME._replace(cpu_seconds=12), 30, 1, True),
        (SOME._replace(read=6000), 30, 1, False),
        (SOME._replace(read=9000), 30, 1, True),
        (SOME._replace(read=4000), 30, 1, False),
        (SOME._replace(read=None), 30, 1, False),
        (SOME._replace(written=5001), 30, 1, True),
        (SOME._replace(written=5500), 30, LEAST_OWN_BYTES, False),
        (SOME._replace(written=8000), 30, LEAST_OWN_BYTES, True),
    ],
)
def test_work_is_more_than_waking_up(
    after: WorkCounts, seconds: float, least: int, expected: bool
) -> None:
    assert has_worked(SOME, after, seconds, least) is expected
