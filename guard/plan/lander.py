"""Land what passes its audit while a plan is worked off, and remember what waits for a person."""

from collections.abc import Callable

from guard.context.invocation import Invocation
from guard.coordinator.record import require_state
from guard.core.base.fields import parse_document
from guard.core.base.text import fit_line
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.tick import not_landed
from guard.core.landing.report import LandingReport, TaskLanding
from guard.landing.land import land
from guard.plan.slots import Slots
from guard.plan.worker import GuardAside, Workers, read_bytes

_MOST_DETAIL = 200


class Lander:
    """Lands the tasks of a run as they pass; a landing that runs commands goes on beside the agents."""

    def __init__(
        self,
        guard: Invocation,
        slots: Slots,
        workers: Workers,
        target: str | None,
        tell: Callable[[str], None],
    ) -> None:
        self._guard, self._slots, self._workers = guard, slots, workers
        self._target, self._tell = target, tell
        self.waiting: dict[str, TaskLanding] = {}
        """Tasks that cannot land without a person."""
        self._aside: GuardAside | None = None
        self._tried: frozenset[tuple[str, str]] = frozenset()
        """What was tried last and has not landed: it is tried again together with what passes next."""

    @property
    def is_at_work(self) -> bool:
        return self._aside is not None

    @property
    def has_ended(self) -> bool:
        """Tell whether a landing has ended that was not taken in yet."""
        return self._aside is not None and self._aside.has_ended

    def land(self, state: Coordinator) -> Coordinator:
        """Land what has passed and was not tried yet; return the state after that."""
        commits = state.task_commits
        ready = frozenset((name, commits[name].commit_sha) for name in not_landed(state))
        names = {name for name, _ in ready}
        self.waiting = {name: found for name, found in self.waiting.items() if name in names}
        if self._aside is not None:
            if not self._aside.has_ended:
                return state
            # Other tasks may have passed meanwhile.
            return self.land(self._take_in(_read(self._aside)))
        if not ready or ready == self._tried:
            return state
        for slot in self._slots.existing():
            found = slot.record()
            if found.work is None and found.task_id in names:
                self._slots.leave(slot)
        self._tried = ready
        if not self._runs_commands:
            return self._take_in(land(self._guard, None, self._target))
        target = ("--target", self._target) if self._target else ()
        words = ("plan", "land", "--format", "json", *target)
        self._aside = self._workers.start_aside("landing", words)
        return state

    @property
    def _runs_commands(self) -> bool:
        settings = self._guard.config.settings
        return bool(settings.prove.checks_at("end") or settings.landing.regenerate)

    def _take_in(self, report: LandingReport | None) -> Coordinator:
        self._aside = None
        if report is None:
            # What went wrong shows where it is done again.
            report = land(self._guard, None, self._target)
        state = require_state(self._guard)
        for landing in report.tasks:
            self._tell(f"task {state.task_name(landing.task_id)}: {_words(landing)}")
            if landing.outcome in ("review", "unverifiable", "not_ready"):
                self.waiting[landing.task_id] = landing
        left = not_landed(state)
        self._tried = frozenset(item for item in self._tried if item[0] in left)
        return state


def _read(aside: GuardAside) -> LandingReport | None:
    data = read_bytes(aside.document)
    try:
        return parse_document(LandingReport, data) if data else None
    except ValueError:
        return None


def _words(landing: TaskLanding) -> str:
    commit = f" as {landing.commit[:10]}" if landing.commit and landing.outcome == "landed" else ""
    detail = (
        f": {fit_line(' '.join(landing.detail.split()), _MOST_DETAIL)}" if landing.detail else ""
    )
    return f"{landing.outcome.replace('_', ' ')}{commit}{detail}"
