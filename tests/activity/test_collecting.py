"""Many sources asked: tier by tier, until enough is known, each failing alone."""

from collections.abc import Iterator

from guard.activity.collecting import COLLECTORS, collect
from guard.activity.subject import Collector, Subject
from guard.core.activity.assessment import Signal
from guard.core.activity.sources import SOURCES, SourceName
from tests.activity.conftest import Look


def telling(source: SourceName, asked: list[str], count: int = 1) -> Collector:
    def tell(subject: Subject) -> Iterator[Signal | None]:
        asked.append(source)
        for number in range(count):
            yield subject.signal(source, subject.now.timestamp() - number, f"sign {number}")

    return Collector(source, tell)


def failing(source: SourceName, error: Exception) -> Collector:
    def fail(_subject: Subject) -> Iterator[Signal | None]:
        raise error
        yield None

    return Collector(source, fail)


def test_every_source_has_a_collector() -> None:
    assert {one.source for one in COLLECTORS} == set(SOURCES)


def test_two_sources_of_the_first_tier_are_enough(subject: Look) -> None:
    asked: list[str] = []
    order: list[SourceName] = ["STATUS_UPDATE", "GIT_COMMIT", "TEST_EXECUTION", "TELEMETRY_EVENT"]
    collectors = [telling(source, asked) for source in order]
    collect(subject(), collectors=collectors)
    assert asked == ["GIT_COMMIT", "TEST_EXECUTION"]
    asked.clear()
    collect(subject(), collectors=collectors, all_sources=True)
    assert asked == ["GIT_COMMIT", "TEST_EXECUTION", "TELEMETRY_EVENT", "STATUS_UPDATE"]


def test_many_signs_of_one_source_are_not_two_sources(subject: Look) -> None:
    asked: list[str] = []
    collectors = [telling("GIT_COMMIT", asked, count=50), telling("STATUS_UPDATE", asked)]
    seen = collect(subject(), collectors=collectors)
    assert asked == ["GIT_COMMIT", "STATUS_UPDATE"]
    assert len(seen.signals) == 21


def test_a_source_that_fails_fails_alone(subject: Look) -> None:
    asked: list[str] = []
    errors = [OSError(5, "Input/output error"), MemoryError(), ValueError("bad\nworse")]
    collectors = [failing("GIT_COMMIT", error) for error in errors]
    seen = collect(subject(), collectors=[*collectors, telling("STATUS_UPDATE", asked)])
    assert [one.source for one in seen.signals] == ["STATUS_UPDATE"]
    assert seen.warnings == (
        "GIT_COMMIT: [Errno 5] Input/output error",
        "GIT_COMMIT: MemoryError",
        "GIT_COMMIT: bad",
    )
