"""All sources asked about one agent, tier by tier; one that fails or takes too long fails alone.

Two sources of the first tier that have spoken are enough: more would not change the verdict.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from guard.activity import collect_machine as machine
from guard.activity import collect_messages as messages
from guard.activity import collect_work as work
from guard.activity.plugins import plugin_collectors
from guard.activity.subject import AgentSubject, Collector, PartialTrouble
from guard.core.activity.assess import ActivityTerms, Signal, is_real, rejection
from guard.core.activity.sources import SourceName
from guard.core.base.text import valid

_ENOUGH = 2
_MOST_OF_ONE = 20
_TIMED: frozenset[SourceName] = frozenset({"TELEMETRY_EVENT", "GIT_COMMIT"})
"""Sources that tell each time at which the agent worked, not only the last; they are always asked."""

COLLECTORS: tuple[Collector, ...] = (
    Collector("TELEMETRY_EVENT", messages.reports),
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
class CollectedSigns:
    """What was seen of an agent, and which sources could not tell."""

    signals: tuple[Signal, ...]
    warnings: tuple[str, ...]
    last_seen: datetime | None = None
    """The newest sign that was one, however old."""
    history: tuple[datetime, ...] = ()
    """When it worked, as far back as signs were gathered."""


def collect(
    subject: AgentSubject,
    terms: ActivityTerms,
    *,
    all_sources: bool = False,
    collectors: Iterable[Collector] | None = None,
) -> CollectedSigns:
    """Ask the sources, until enough is known: guard's own and those of other packages, unless some are named."""
    asked = [*COLLECTORS, *plugin_collectors(subject.root)] if collectors is None else collectors
    found: list[Signal] = []
    warnings: list[str] = []
    real: list[Signal] = []
    for collector in sorted(asked, key=lambda one: one.tier):
        if not all_sources and _is_enough(found, subject, terms):
            break
        signals = _ask(collector, subject, warnings)
        real += (one for one in signals if is_real(one, subject.now, terms))
        # What counts comes first: very much noise must not hide it.
        signals.sort(key=lambda one: (rejection(one, subject.now, terms) is None, one.at))
        found += signals[-_MOST_OF_ONE:][::-1]
    return CollectedSigns(
        signals=tuple(found),
        warnings=tuple(dict.fromkeys(warnings)),
        last_seen=max((one.at for one in real), default=None),
        history=tuple(one.at for one in real if one.source in _TIMED),
    )


def _ask(collector: Collector, subject: AgentSubject, warnings: list[str]) -> list[Signal]:
    """All that one source shows; what it showed before it failed counts."""
    found: list[Signal] = []
    try:
        for sign in collector.collect(subject):
            if isinstance(sign, PartialTrouble):
                warnings.append(f"{collector.source}: {valid(sign.why)}"[:512])
            elif sign is not None:
                found.append(sign)
    except Exception as error:  # A source of whatever kind fails alone.
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        warnings.append(f"{collector.source}: {valid(what)}"[:512])
    return found


def _is_enough(found: Iterable[Signal], subject: AgentSubject, terms: ActivityTerms) -> bool:
    now = subject.now
    spoken = {one.source for one in found if one.tier == 1 and rejection(one, now, terms) is None}
    return len(spoken) >= _ENOUGH
