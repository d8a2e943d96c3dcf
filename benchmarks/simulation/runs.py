"""Runs of several sessions: each judged to its end, with the breaker that goes from one to the next, beside plain counting."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from random import Random
from typing import Any

from benchmarks.simulation.kinds import SUPERVISED, UNSUPERVISED
from benchmarks.simulation.ledger import Ledger, is_backed
from benchmarks.simulation.plain import PlainCounting, PlainlyJudged
from benchmarks.simulation.sessions import Making, Session, Truth
from benchmarks.simulation.simulated_check import SimulatedCheck
from guard.core.base.moment import Moment, Stamp
from guard.core.breaker.allow import BreakerPermission, claim, permission
from guard.core.breaker.events import BreakerEvent, BreakerRecorded
from guard.core.breaker.record import after_iteration
from guard.core.breaker.settings import BreakerSettings
from guard.core.breaker.state import Breaker, BreakerCase, BreakerFold
from guard.core.check.evidence import Policy
from guard.core.check.report import CheckReport, CheckResult
from guard.core.log.record import Position
from guard.core.run.loop import after_iteration as next_step

_BEGINNING = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
_MOST_CHECKS = 60
_PERSISTENCE = 0.55
"""How likely it is that a session is of the same kind as the one before."""
_SUPERVISED = 0.85
_PATIENT = 0.5
_GOES_ON = {("waiting", "alive"), ("waiting", "team"), ("working", "agent_alive")}
"""Verdicts after which the same iteration is judged again."""


@dataclass(frozen=True)
class Judged:
    """What was said of one session, and what was true at that moment."""

    kind: str
    truth: Truth
    status: str
    reason: str
    said: tuple[str, ...]
    """Every status that it was given: one that goes on is judged again."""
    probes: int
    is_false_complete: bool
    is_lie_believed: bool
    """A false claim that there was nothing to do, which nothing contradicts."""
    unsaved: int
    """Files of the agent's that would be lost."""
    seized: int
    """Files of the user's that were committed."""
    intruded: bool
    """Whether something was committed under the hands of a helper at work."""
    opened: str | None
    """Why the breaker opened after it, if it did."""
    is_false_abort: bool
    plain: PlainlyJudged | None

    @property
    def wrong(self) -> set[str]:
        return set(self.said) - self.truth.right


class Run:
    """One run, from its first session until it is stopped or its sessions are used up."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._supervised = self._random.random() < _SUPERVISED
        self._kinds = SUPERVISED if self._supervised else UNSUPERVISED
        self._policy = BreakerSettings()
        self._breaker = BreakerFold("w-1")
        self._ledger = Ledger()
        self._plain = PlainCounting()
        self._now = _BEGINNING
        self._limited = 0

    def sessions(self) -> Iterator[Judged]:
        """The sessions, judged; a run ends early if it is stopped, or when there is nothing to do."""
        kind = self._drawn()
        for _ in range(self._random.randint(3, 9)):
            if not self._is_allowed():
                return
            judged = self._judge(kind)
            yield judged
            if judged.reason == "nothing_to_do":
                return
            kind = kind if self._random.random() < _PERSISTENCE else self._drawn()

    def _drawn(self) -> str:
        weights = [weight for weight, _ in self._kinds.values()]
        return self._random.choices(list(self._kinds), weights)[0]

    def _is_allowed(self) -> bool:
        """Ask the breaker; at an open one some runs are given up, others wait for the trial."""
        found = self._permission()
        if not found.allowed and self._random.random() < _PATIENT:
            self._now = found.retry_at or self._now
            found = self._permission()
        if found.trial:
            self._tell(claim(self._case("trial"), found.reason, None))
        return found.allowed

    def _judge(self, kind: str) -> Judged:
        session = self._kinds[kind][1](Making(self._random, self._now, self._supervised))
        plain = self._plain.judge(session)
        checks = self._checks(session)
        checked = checks[-1]
        world, verdict = session.world, checked.verdict
        unbacked = verdict.status == "complete" and not is_backed(session)
        self._ledger.add(session)
        self._now += timedelta(seconds=world.now + 1)
        opened, is_false_abort = self._feed(session, checked)
        self._wait(checked)
        return Judged(
            kind=kind,
            truth=session.truth,
            status=verdict.status,
            reason=verdict.reason,
            said=tuple(dict.fromkeys(one.verdict.status for one in checks)),
            probes=sum(len(one.evidence.probes) for one in checks),
            is_false_complete=unbacked and not session.truth.unprovable,
            is_lie_believed=unbacked and session.truth.unprovable,
            unsaved=len(world.unsaved()),
            seized=len(world.seized),
            intruded=world.intruded,
            opened=opened,
            is_false_abort=is_false_abort,
            plain=plain,
        )

    def _checks(self, session: Session) -> list[CheckResult]:
        """Judge it, and judge it again while it goes on, as the next `guard run` would."""
        checks: list[CheckResult] = []
        while len(checks) < _MOST_CHECKS:
            checks.append(SimulatedCheck(session, Policy(), self._random, self._now).make())
            verdict = checks[-1].verdict
            if (verdict.status, verdict.reason) not in _GOES_ON:
                break
            session.world.advance(1)
        return checks

    def _feed(self, session: Session, checked: CheckResult) -> tuple[str | None, bool]:
        """Tell the breaker as `guard run` does, and `guard check` does not; why it opened, and whether falsely."""
        verdict, output = checked.verdict, session.output
        if not self._supervised or (verdict.status, verdict.reason) in _GOES_ON:
            return None, False
        case = self._case("end")
        before = case.state
        recorded = BreakerRecorded(
            **case.event_fields(),
            status=verdict.status,
            reason=verdict.reason,
            fingerprint=(output.fingerprint if output else None) or verdict.reason,
            denied=output is not None and output.outcome == "denied",
            rescued=bool(checked.rescue and checked.rescue.commits),
            head=None,
        )
        self._tell(*after_iteration(case, recorded))
        after = self._state()
        if after.openings == before.openings or after.state != "open":
            return None, False
        is_right = self._ledger.justifies(self._policy, trial=before.state == "half_open")
        return after.reason, not is_right or session.world.helper_is_active()

    def _wait(self, checked: CheckResult) -> None:
        """Wait as the loop does, for a limit to end."""
        verdict = checked.verdict
        self._limited = self._limited + 1 if verdict.status == "limited" else 0
        seen: Any = {"status": verdict.status, "reason": verdict.reason}
        report = CheckReport.model_construct(**seen, retry_at=verdict.retry_at)
        step = next_step(report, self._now, self._limited, True)
        self._now += timedelta(seconds=step.seconds)

    def _permission(self) -> BreakerPermission:
        return permission(self._state(), self._policy, self._moment(), head=None, holder_alive=True)

    def _tell(self, *events: BreakerEvent) -> None:
        for event in events:
            self._breaker.apply(event)
            seq = self._breaker.reached.seq + 1
            self._breaker.reached = Position(1, seq, seq, "")

    def _case(self, event_id: str) -> BreakerCase:
        return BreakerCase(self._state(), self._policy, self._moment(), Stamp(event_id))

    def _state(self) -> Breaker:
        return self._breaker.document()

    def _moment(self) -> Moment:
        return Moment(self._now, (self._now - _BEGINNING).total_seconds(), "boot-1")


def simulated(sessions: int, seed: int) -> list[Judged]:
    """So many sessions, in as many runs as that takes."""
    return list(islice(_endless(seed), sessions))


def first_with(test: Callable[[Judged], bool], sessions: int, seed: int) -> Judged | None:
    """Return the first session of so many of which this is true; those after it are not played."""
    return next(filter(test, islice(_endless(seed), sessions)), None)


def _endless(seed: int) -> Iterator[Judged]:
    for number in count(1):
        yield from Run(f"{seed}/{number}").sessions()
