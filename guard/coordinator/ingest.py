"""Record the signals in an agent's output."""

import sys
from pathlib import Path
from typing import BinaryIO

from guard.context.invocation import Invocation
from guard.coordinator.record import find_event, record, reject_invalid, require_state
from guard.core.base.text import utf8_text
from guard.core.classify import make_reader
from guard.core.coordinator.from_signal import request_from
from guard.core.coordinator.report import IngestedSignal, PlanIngestReport
from guard.core.coordinator.requests import NotAllowed, numbered_id
from guard.core.plan.signals import AgentSignal, read_signals
from guard.errors import Refused, WrongUsage

_MOST_BYTES = 64 * 1024 * 1024
_MOST_LINE = 512
_BY_HAND = "only a person can roll a task back, with `guard rollback TASK`"


def ingest(
    guard: Invocation, agent_id: str, file: Path, event_id: str | None = None
) -> PlanIngestReport:
    """Record the signals of a file one by one; a refused signal does not stop the next.

    With an event id, the id of each signal is made of it and of the signal's number.
    """
    require_state(guard)
    return record_signals_in(guard, agent_id, last_message(guard, _read(file)), event_id)


def record_signals_in(
    guard: Invocation, agent_id: str, text: str, event_id: str | None = None
) -> PlanIngestReport:
    reports = [
        _record_signal(guard, agent_id, signal, numbered_id(event_id, number) if event_id else None)
        for number, signal in enumerate(read_signals(text), 1)
    ]
    refused = sum(report.outcome == "refused" for report in reports)
    return PlanIngestReport(agent_id=agent_id, signals=tuple(reports), refused=refused)


def last_message(guard: Invocation, data: bytes) -> str:
    """Return the last message of an event stream, without what tool calls quote; plain text is returned whole."""
    stream = make_reader(None)
    stream.feed(data)
    stream.finish(None, guard.clock.now().astimezone())
    return utf8_text(stream.last_message if stream.format else data.decode(errors="replace"))


def _read(file: Path) -> bytes:
    try:
        if str(file) == "-":
            return _read_bounded(sys.stdin.buffer)
        with file.open("rb") as stream:
            return _read_bounded(stream)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise WrongUsage(
            f"{file} cannot be read: {why}", "name a file with the agent's output"
        ) from None


def _read_bounded(stream: BinaryIO) -> bytes:
    data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise WrongUsage("the output is larger than 64 MiB", "give only the agent's last message")
    return data


def _record_signal(
    guard: Invocation, agent_id: str, signal: AgentSignal, event_id: str | None
) -> IngestedSignal:
    try:
        known = find_event(guard, event_id) if event_id is not None else None
        with reject_invalid():
            request = request_from(require_state(guard), agent_id, signal, known)
        done = record(guard, request, event_id)
    except NotAllowed as error:
        return _report_signal(signal, "refused", f"{error} ({error.refusal.hint})")
    except (Refused, WrongUsage) as error:
        return _report_signal(signal, "refused", error.message)
    outcome, detail = "repeated" if done.repeated else "recorded", ""
    if signal.kind == "rollback_required" and not done.repeated:
        outcome, detail = "for_a_person", _BY_HAND
    return _report_signal(signal, outcome, detail, tuple(event.type for event in done.events))


def _report_signal(
    signal: AgentSignal, outcome: str, detail: str, events: tuple[str, ...] = ()
) -> IngestedSignal:
    fields = {"kind": signal.kind, "line": signal.line, "task": utf8_text(signal.task)[:_MOST_LINE]}
    result = {"outcome": outcome, "detail": utf8_text(detail)[:_MOST_LINE], "events": events}
    return IngestedSignal.model_validate(fields | result)
