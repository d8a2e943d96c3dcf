"""Tell a person, wherever they are, what a run of the plan comes to; the sessions in its slots send nothing themselves."""

from collections import Counter
from datetime import datetime

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.text import plural
from guard.core.check.report import CheckReport
from guard.core.coordinator.entries import OpenQuestion
from guard.core.coordinator.run_report import PlanRunReport
from guard.core.cost.budget import BudgetReport
from guard.core.notify.notice import (
    Notice,
    notice_of_budget,
    notice_of_person,
    notice_of_plan_breaker,
    notice_of_plan_end,
    notices_of_verdict,
)
from guard.notify import send_notice


class PlanNotices:
    """Sends the notices of one run of the plan, if the user wants notices."""

    def __init__(self, guard: Invocation) -> None:
        self._guard = guard
        self._settings = guard.config.settings.notify
        self._about = f"plan {new_id()}"
        self._limited_since: datetime | None = None
        self._refuted: Counter[str] = Counter()
        """How often the work of each task was refuted in a row."""

    def tell_question(self, question: OpenQuestion, task: str | None) -> None:
        # The next run of the plan finds the same question, and tells it no second time.
        about = f"question {question.question_id} {question.asked_at.isoformat()}"
        words = f"task {task}: {question.question}" if task else question.question
        self._send(notice_of_person(about, words))

    def tell_session(self, task: str, report: CheckReport) -> None:
        """Tell of a limit that lasts, and of work that is refuted again."""
        now = self._guard.clock.now()
        self._refuted[task] = self._refuted[task] + 1 if report.status == "refuted" else 0
        if report.status != "limited":
            self._limited_since = None
        elif self._limited_since is None:
            self._limited_since = now
        found = notices_of_verdict(
            report, self._refuted[task], self._limited_since, now, self._settings.limit_minutes
        )
        for notice in found:
            if notice.kind == "limit":
                # One limit holds back all agents.
                self._send(
                    notice.model_copy(update={"about": f"{self._about} {self._limited_since}"})
                )
            elif notice.kind == "refuted":
                words = {"title": f"task {task}: {notice.title}"}
                self._send(notice.model_copy(update=words))

    def tell_budget(self, spent: BudgetReport | None) -> None:
        for name in spent.nearly_used_up if spent is not None else ():
            self._send(notice_of_budget(self._about, name, spent.detail if spent else ""))

    def tell_breaker(self, reason: str) -> None:
        self._send(notice_of_plan_breaker(self._about, reason))

    def tell_end(self, report: PlanRunReport) -> None:
        """Tell how the run ended, unless the user ended it, or another notice said why."""
        if report.ended in ("stopped", "breaker_open"):
            return
        for need in report.needs_you if report.ended == "person_needed" else ():
            if need.kind != "question":
                self._send(notice_of_person(f"{self._about} {need.kind} {need.task_id}", need.text))
        if report.ended != "person_needed":
            landed = f"{report.landed} of {plural(report.total_tasks, 'task')} landed"
            self._send(notice_of_plan_end(self._about, report.ended, landed))

    def _send(self, notice: Notice) -> None:
        if self._settings.is_set:
            send_notice(self._guard, notice)
