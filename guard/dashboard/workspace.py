"""What the dashboard knows of one workspace: its log, folded as far as it was read, and what was made of that."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Any, TypeVar

from guard.context.invocation import Invocation
from guard.core.base.fields import Report, parse_document
from guard.core.base.text import plural, shorten
from guard.core.check.events import CheckMade
from guard.core.check.rejudge import JudgeReport, replay_check
from guard.core.dashboard.moment import MomentFact, state_after
from guard.core.log.events import BaseEvent
from guard.core.log.record import START, LogEntry, Position
from guard.core.report.details import CommitDetails
from guard.core.report.document import NightReport
from guard.core.report.needs import WorktreePaths, open_questions
from guard.core.report.night import IterationFacts, Night
from guard.core.report.review import CommitFacts
from guard.core.rescue.redact import known_secrets, redact_document
from guard.core.show.report import ShowReport
from guard.errors import GuardError, Refused
from guard.report.details import read_details
from guard.report.gather import name_repository, report_night, worktree_places
from guard.show import show_check

R = TypeVar("R", bound=Report)
_FRESH_SECONDS = 5.0
_MOST_KEPT = 8
_STEP = 500
_SHOWN_EVENTS = 40
_LONGEST_LINE = 600
_LONGEST_VALUE = 160
_ENVELOPE = ("at", "type", "id", "run", "iteration")


class _Reading:
    """The log as far as it was read."""

    def __init__(self) -> None:
        self.night = Night()
        self.position = START
        self.checks: dict[tuple[str, int], Position] = {}
        """The place before the newest check of each iteration."""
        self.marks: list[Position] = [START]
        """Every so many records the place after it, so that a page of the log is found without reading all before it."""

    def take(self, entry: LogEntry) -> None:
        self.night.feed(entry.event)
        if isinstance(entry.event, CheckMade):
            self.checks[entry.event.run, entry.event.iteration] = self.position
        self.position = entry.position
        if self.position.seq - self.marks[-1].seq >= _STEP:
            self.marks.append(self.position)


class ShownWorkspace:
    """One workspace; the threads that answer requests take turns."""

    def __init__(self, guard: Invocation) -> None:
        self.guard = guard
        # The first look may move the state of an older guard; it is not for a request to do so.
        self.places = worktree_places(guard)
        self.key, self.name = guard.workspace.key, name_repository(guard)
        self._lock = threading.RLock()
        self._reading = _Reading()
        self._cursor: _Reading | None = None
        """The log as far as the slider went."""
        self._commits: dict[str, CommitFacts] = {}
        self._reports: dict[str | None, tuple[int, float, NightReport]] = {}
        self._details: dict[str, tuple[tuple[str, ...], Mapping[str, CommitDetails]]] = {}

    @contextmanager
    def reading(self) -> Iterator[_Reading]:
        """Read on to the end of the log, and hold what was read for one thread."""
        with self._lock:
            try:
                self._read_on()
            except GuardError:
                if not self._reading.position.seq:
                    raise
                # Another log may have come in the place of the one that was read: it is read from its beginning, once.
                self._forget()
                self._read_on()
            yield self._reading

    def _read_on(self) -> None:
        for entry in self.guard.store.entries(self._reading.position):
            self._reading.take(entry)

    def _forget(self) -> None:
        self._reading = _Reading()
        self._reports.clear()
        self._cursor = None

    def seq(self) -> int:
        """Return the number of the newest record."""
        with self.reading() as read:
            return read.position.seq

    def report(self, run: str | None = None) -> NightReport:
        """Return the report of a run, or of the newest run or the last 24 hours."""
        with self.reading() as read:
            known = self._reports.get(run)
            if known is not None:
                seq, made, report = known
                if seq == read.position.seq and monotonic() - made < _FRESH_SECONDS:
                    return report
            report = report_night(self.guard, read.night, run=run, commits=self._commits)
            while len(self._reports) >= _MOST_KEPT:
                self._reports.pop(next(iter(self._reports)))
            self._reports[run] = read.position.seq, monotonic(), report
            return report

    def details(self, run: str, report: NightReport) -> Mapping[str, CommitDetails]:
        """Return what the first commits to review of the run change."""
        with self._lock:
            wanted = tuple(oid for item in report.review for oid in item.oids)
            known = self._details.get(run)
            if known is not None and known[0] == wanted:
                return known[1]
            details = read_details(self.guard, report)
            while len(self._details) >= _MOST_KEPT:
                self._details.pop(next(iter(self._details)))
            self._details[run] = wanted, details
            return details

    def iteration(self, run: str, number: int) -> IterationFacts:
        with self.reading() as read:
            found = read.night.iterations.get((run, number))
        if found is None:
            raise Refused(f"the log has no iteration {number} of run {run}")
        return found

    def check(self, run: str, number: int) -> CheckMade | None:
        """Return the newest check of the iteration; None if it has none yet."""
        with self.reading() as read:
            before = read.checks.get((run, number))
            if before is None:
                return None
            entry = next(self.guard.store.entries(before))
        assert isinstance(entry.event, CheckMade)
        return entry.event

    def show(self, run: str, number: int) -> ShowReport | None:
        """Return the iteration without secrets; None while it has no check."""
        check = self.check(run, number)
        if check is None:
            return None
        with self.reading() as read:
            facts, known = read.night.iterations[run, number], read.night.runs.get(run)
            rescue = facts.rescues[-1] if facts.rescues else None
            command = known.command if known is not None else ()
            agent = facts.agent
        return self.redact(show_check(self.guard, check, rescue, command=command, agent=agent))

    def breakers(self) -> list[dict[str, Any]]:
        """Return the breakers of the work trees, and what a person may do with each."""
        places = self.locate()
        with self.reading() as read:
            known = {
                key: (each.state, each.reason, each.streak)
                for key, each in read.night.breakers.items()
            }
        if places.here is not None:
            known.setdefault(places.here, ("closed", None, 0))
        lines = []
        for key, (state, reason, streak) in known.items():
            is_plan, is_near = key == places.plan, key in places.paths
            lines.append(
                {
                    "worktree": key,
                    "place": "the plan" if is_plan else places.paths.get(key, key),
                    "state": state,
                    "reason": (reason or "") if state != "closed" else "",
                    "streak": streak,
                    "may_reset": (is_plan or is_near) and (state != "closed" or streak > 0),
                    "may_trip": is_near and not is_plan and state != "open",
                }
            )
        redacted: list[dict[str, Any]] = self.redact_plain(lines)
        return redacted

    def questions(self) -> list[dict[str, str]]:
        """Return the questions that wait for an answer: of the plan, and of iterations of this machine."""
        with self.reading() as read:
            plan = read.night.plan
            asking = open_questions(read.night.in_order())
        asked = plan.pending_divine_questions if plan is not None else ()
        lines = [
            {"id": each.question_id, "text": each.question, "of": "plan"}
            for each in asked
            if each.response is None
        ]
        near = self.locate().paths
        lines += [
            {"id": f"{each.run}/{each.number}", "text": words, "of": "run"}
            for each, words in asking
            if each.worktree in near
        ]
        redacted: list[dict[str, str]] = self.redact_plain(lines)
        return redacted

    def find_question(self, run: str, number: int) -> tuple[IterationFacts, str] | None:
        """Return the iteration and its question, if that is still open and its work tree is on this machine."""
        with self.reading() as read:
            asking = open_questions(read.night.in_order())
        near = self.locate().paths
        return next(
            (
                (each, words)
                for each, words in asking
                if (each.run, each.number) == (run, number) and each.worktree in near
            ),
            None,
        )

    def judge_again(
        self, run: str, number: int, given: Mapping[str, str]
    ) -> tuple[list[tuple[str, str]], JudgeReport | None, str]:
        """Return the settings of a check, and how it is judged with those that are given, or why it cannot be."""
        check = self.check(run, number)
        if check is None:
            return [], None, ""
        known = {name: _setting(value) for name, value in check.policy.items()}
        settings = [(name, given.get(name, text)) for name, text in known.items()]
        if "judge" not in given:
            return settings, None, ""
        changed = [f"{name}={text.strip()}" for name, text in settings if text != known[name]]
        try:
            return settings, self.redact(replay_check(check, changed)), ""
        except ValueError as error:
            return settings, None, str(error)

    def look_at(
        self, seq: int
    ) -> tuple[BaseEvent, tuple[MomentFact, ...], Sequence[Mapping[str, Any]]]:
        """Return the event of this number, the state after it, and the events up to it, the newest first."""
        with self.reading() as read:
            night = read.night if seq >= read.position.seq else self._fold_to(seq)
            facts = self._redact_facts(state_after(night))
            first = max(0, seq - _SHOWN_EVENTS)
            mark = read.marks[min(first // _STEP, len(read.marks) - 1)]
            found: list[LogEntry] = []
            for entry in self.guard.store.entries(mark):
                if entry.position.seq > seq:
                    break
                if entry.position.seq > first:
                    found.append(entry)
        lines = [self._event_line(entry) for entry in reversed(found)]
        return found[-1].event, facts, lines

    def _fold_to(self, seq: int) -> Night:
        # The slider mostly goes on from where it is; to go back, the log is read again from its beginning.
        if self._cursor is None or self._cursor.position.seq > seq:
            self._cursor = _Reading()
        if self._cursor.position.seq < seq:
            for entry in self.guard.store.entries(self._cursor.position):
                self._cursor.take(entry)
                if entry.position.seq >= seq:
                    break
        return self._cursor.night

    def _redact_facts(self, facts: tuple[MomentFact, ...]) -> tuple[MomentFact, ...]:
        return tuple(replace(fact, text=self.redact_plain(fact.text)) for fact in facts)

    def _event_line(self, entry: LogEntry) -> dict[str, Any]:
        event = entry.event
        fields = self.redact_plain(json.loads(event.model_dump_json(exclude=set(_ENVELOPE))))
        about = [f"{name}: {_short(value)}" for name, value in fields.items() if _says(value)]
        return {
            "seq": entry.position.seq,
            "at": f"{event.at:%Y-%m-%d %H:%M:%S}",
            "type": event.type,
            "run": event.run,
            "iteration": event.iteration,
            "about": "; ".join(about)[:_LONGEST_LINE],
        }

    def redact(self, document: R) -> R:
        """Return a document without secrets."""
        plain = json.loads(document.model_dump_json())
        clean = self.redact_plain(plain)
        return parse_document(type(document), json.dumps(clean).encode())

    def redact_plain(self, plain: Any) -> Any:
        return redact_document(plain, known_secrets(self.guard.environ))

    def locate(self) -> WorktreePaths:
        """Return where the work trees of the workspace are now."""
        return worktree_places(self.guard)


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _says(value: Any) -> bool:
    return value is not None and value not in ("", [], {})


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > _LONGEST_VALUE and isinstance(value, dict | list):
        return plural(len(value), "field" if isinstance(value, dict) else "item")
    return shorten(text, _LONGEST_VALUE)
