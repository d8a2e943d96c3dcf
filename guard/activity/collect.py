"""Ask all sources about one agent, tier by tier; a source that fails or takes too long fails alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from guard.activity import collect_machine, collect_messages, collect_work
from guard.activity.plugins import plugin_collectors
from guard.activity.subject import AgentSubject, Collector, PartialTrouble
from guard.core.activity.assess import ActivityTerms, Signal, is_real, rejection
from guard.core.activity.sources import SourceName
from guard.core.base.text import utf8_text

_ENOUGH = 2
_MOST_OF_ONE = 20
_TIMED: frozenset[SourceName] = frozenset({"TELEMETRY_EVENT", "GIT_COMMIT"})
"""Sources that give every time at which the agent worked, not only the last."""

COLLECTORS: tuple[Collector, ...] = (
    Collector("TELEMETRY_EVENT", collect_messages.reports),
    Collector("TELEMETRY_EVENT", collect_messages.events),
    Collector("GIT_COMMIT", collect_work.commits),
    Collector("CONTRACT_CLAIMED", collect_messages.claims),
    Collector("TRANSCRIPT_GROWTH", collect_machine.transcript),
    Collector("TEST_EXECUTION", collect_work.runs_of_tests),
    Collector("PROCESS_PROGRESS", collect_machine.processes),
    Collector("STATUS_UPDATE", collect_messages.status_file),
    Collector("FILE_MODIFICATION", collect_work.changed_files),
    Collector("DEVLOG_CREATED", collect_messages.devlogs),
    Collector("INBOX_PROCESSING", collect_messages.inbox),
    Collector("TMUX_ACTIVITY", collect_machine.terminal),
    Collector("MESSAGE_QUEUE", collect_messages.queue),
    Collector("WORKSPACE_ACCESS", collect_work.read_files),
)
"""Within a tier the cheap sources come first."""


@dataclass(frozen=True)
class CollectedSigns:
    """The signs of one agent, and the sources that could not be read."""

    signals: tuple[Signal, ...]
    warnings: tuple[str, ...]
    last_seen: datetime | None = None
    """The newest real sign, however old."""
    history: tuple[datetime, ...] = ()
    """When the agent worked, as far back as signs were gathered."""


def collect(
    subject: AgentSubject,
    terms: ActivityTerms,
    *,
    all_sources: bool = False,
    collectors: Iterable[Collector] | None = None,
) -> CollectedSigns:
    """Ask the collectors (by default guard's own and those of plugins) until two sources of the first tier have signs."""
    sources = [*COLLECTORS, *plugin_collectors(subject.root)] if collectors is None else collectors
    found: list[Signal] = []
    warnings: list[str] = []
    real: list[Signal] = []
    for collector in sorted(sources, key=lambda source: source.tier):
        if not all_sources and _is_enough(found, subject, terms):
            break
        signals = _ask(collector, subject, warnings)
        real += (signal for signal in signals if is_real(signal, subject.now, terms))
        # Signs that count come last and are kept: much noise must not push them out.
        signals.sort(key=lambda signal: (rejection(signal, subject.now, terms) is None, signal.at))
        found += signals[-_MOST_OF_ONE:][::-1]
    return CollectedSigns(
        signals=tuple(found),
        warnings=tuple(dict.fromkeys(warnings)),
        last_seen=max((signal.at for signal in real), default=None),
        history=tuple(signal.at for signal in real if signal.source in _TIMED),
    )


def _ask(collector: Collector, subject: AgentSubject, warnings: list[str]) -> list[Signal]:
    found: list[Signal] = []
    try:
        for sign in collector.collect(subject):
            if isinstance(sign, PartialTrouble):
                warnings.append(f"{collector.source}: {utf8_text(sign.why)}"[:512])
            elif sign is not None:
                found.append(sign)
    except Exception as error:  # A source fails alone; the signs that it yielded before count.
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        warnings.append(f"{collector.source}: {utf8_text(why)}"[:512])
    return found


def _is_enough(found: Iterable[Signal], subject: AgentSubject, terms: ActivityTerms) -> bool:
    # More signs of the first tier would not change the verdict.
    now = subject.now
    active_sources = {
        signal.source
        for signal in found
        if signal.tier == 1 and rejection(signal, now, terms) is None
    }
    return len(active_sources) >= _ENOUGH
