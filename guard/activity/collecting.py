"""All sources asked about one agent, tier by tier; one that fails or takes too long fails alone.

Two sources of the first tier that have spoken are enough: more would not change the verdict.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from guard.activity import machine, messages, telemetry, work
from guard.activity.subject import Collector, Subject
from guard.core.activity.assessment import Signal
from guard.core.activity.sources import SOURCES, Tier

_ENOUGH = 2
_MOST_OF_ONE = 20

COLLECTORS: tuple[Collector, ...] = (
    Collector("TELEMETRY_EVENT", telemetry.reports),
    Collector("TELEMETRY_EVENT", messages.events),
    Collector("GIT_COMMIT", work.commits),
    Collector("CONTRACT_CLAIMED", messages.claims),
    Collector("TRANSCRIPT_GROWTH", machine.transcript),
    Collector("TEST_EXECUTION", work.runs_of_tests),
    Collector("PROCESS_PROGRESS", machine.processes),
    Collector("STATUS_UPDATE", messages.status_file),
    Collector("FILE_MODIFICATION", work.changed_files),
    Collector("DEVLOG_CREATED", messages.devlogs),
    Collector("INBOX_PROCESSING", messages.inbox),
    Collector("TMUX_ACTIVITY", machine.terminal),
    Collector("MESSAGE_QUEUE", messages.queue),
    Collector("WORKSPACE_ACCESS", work.read_files),
)
"""The cheap ones of a tier first."""


@dataclass(frozen=True)
class Collected:
    """What was seen of an agent, and which sources could not tell."""

    signals: tuple[Signal, ...]
    warnings: tuple[str, ...]


def collect(
    subject: Subject, *, all_sources: bool = False, collectors: Iterable[Collector] = COLLECTORS
) -> Collected:
    """Ask the sources, until enough is known."""
    found: list[Signal] = []
    warnings: list[str] = []
    for collector in sorted(collectors, key=lambda one: SOURCES[one.source].tier):
        if not all_sources and _is_enough(found, SOURCES[collector.source].tier):
            continue
        try:
            found += _newest(collector, subject)
        except Exception as error:  # A source of whatever kind fails alone.
            what = str(error).splitlines()[0] if str(error) else type(error).__name__
            warnings.append(f"{collector.source}: {what}"[:512])
    return Collected(tuple(found), tuple(warnings))


def _newest(collector: Collector, subject: Subject) -> list[Signal]:
    """Those of one source that are the newest, with none in the future before them."""
    found = [signal for signal in collector.collect(subject) if signal is not None]
    found.sort(key=lambda one: (one.at <= subject.now, one.at), reverse=True)
    return found[:_MOST_OF_ONE]


def _is_enough(found: Iterable[Signal], tier: Tier) -> bool:
    spoken = {signal.source for signal in found if signal.tier == 1}
    return len(spoken) >= _ENOUGH and tier >= 1
