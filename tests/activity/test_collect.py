"""Sources are asked tier by tier until enough is known, and each fails alone."""

from collections.abc import Iterator

from guard.activity.collect import COLLECTORS, collect
from guard.activity.subject import AgentSubject, Collector, Sign
from guard.core.activity.assess import ActivityTerms
from guard.core.activity.sources import SOURCES, SourceName
from tests.activity.conftest import Look


def telling(
    source: SourceName, asked: list[str], count: int = 1, message: str = "", ago: float = 0
) -> Collector:
    def tell(subject: AgentSubject) -> Iterator[Sign]:
        asked.append(source)
        for number in range(count):
            at = subject.now_seconds - ago - number
            yield subject.signal(source, at, f"sign {number}", message)

    return Collector(source, tell)


def failing(source: SourceName, error: Exception) -> Collector:
    def fail(_subject: AgentSubject) -> Iterator[Sign]:
        raise error
        yield None

    return Collector(source, fail)


def test_every_source_has_a_collector() -> None:
    assert {one.source for one in COLLECTORS} == set(SOURCES)


def test_two_sources_of_the_first_tier_are_enough(subject: Look) -> None:
    asked: list[str] = []
    order: list[SourceName] = ["STATUS_UPDATE", "GIT_COMMIT", "TEST_EXECUTION", "TELEMETRY_EVENT"]
    collectors = [telling(source, asked) for source in order]
    collect(subject(), ActivityTerms(), collectors=collectors)
    assert asked == ["GIT_COMMIT", "TEST_EXECUTION"]
    asked.clear()
    collect(subject(), ActivityTerms(), collectors=collectors, all_sources=True)
    assert asked == ["GIT_COMMIT", "TEST_EXECUTION", "TELEMETRY_EVENT", "STATUS_UPDATE"]


def test_many_signs_of_one_source_are_not_two_sources(subject: Look) -> None:
    asked: list[str] = []
    collectors = [telling("GIT_COMMIT", asked, count=50), telling("STATUS_UPDATE", asked)]
    seen = collect(subject(), ActivityTerms(), collectors=collectors)
    assert asked == ["GIT_COMMIT", "STATUS_UPDATE"]
    assert len(seen.signals) == 21


def test_signs_that_do_not_count_are_not_enough(subject: Look) -> None:
    asked: list[str] = []
    collectors = [
        telling("TELEMETRY_EVENT", asked, message="ACK"),
        telling("CONTRACT_CLAIMED", asked, ago=-7200),
        telling("STATUS_UPDATE", asked),
    ]
    collect(subject(), ActivityTerms(), collectors=collectors)
    assert asked == ["TELEMETRY_EVENT", "CONTRACT_CLAIMED", "STATUS_UPDATE"]


def test_much_noise_does_not_hide_what_counts(subject: Look) -> None:
    asked: list[str] = []
    real = telling("DEVLOG_CREATED", asked, message="Wrote the parser.", ago=300)
    noise = telling("DEVLOG_CREATED", asked, count=50, message="ok")

    def both(looked: AgentSubject) -> Iterator[Sign]:
        yield from noise.collect(looked)
        yield from real.collect(looked)

    seen = collect(subject(), ActivityTerms(), collectors=[Collector("DEVLOG_CREATED", both)])
    assert seen.signals[0].message == "Wrote the parser."


def test_what_was_seen_before_a_failure_counts(subject: Look) -> None:
    def fails_late(looked: AgentSubject) -> Iterator[Sign]:
        yield looked.signal("GIT_COMMIT", looked.now_seconds, "a commit")
        raise OSError(5, "Input/output error")

    seen = collect(subject(), ActivityTerms(), collectors=[Collector("GIT_COMMIT", fails_late)])
    assert (len(seen.signals), len(seen.warnings)) == (1, 1)


def test_a_source_that_fails_fails_alone(subject: Look) -> None:
    asked: list[str] = []
    errors = [OSError(5, "Input/output error"), MemoryError(), ValueError("bad\nworse")]
    collectors = [failing("GIT_COMMIT", error) for error in errors]
    seen = collect(
        subject(), ActivityTerms(), collectors=[*collectors, telling("STATUS_UPDATE", asked)]
    )
    assert [one.source for one in seen.signals] == ["STATUS_UPDATE"]
    assert seen.warnings == (
        "GIT_COMMIT: [Errno 5] Input/output error",
        "GIT_COMMIT: MemoryError",
        "GIT_COMMIT: bad",
    )
