"""Gather the evidence for a prompt: from the registries, the last check, the breaker, the team, the findings, and git.

Evidence that cannot be read is left out with a warning: a prompt with less in it is better than none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from guard.activity.known_agents import KnownAgents
from guard.context.invocation import Invocation
from guard.core.activity.noise import is_noise
from guard.core.activity.report import ActivityReport
from guard.core.activity.settings import split_list
from guard.core.agents.agent import Agent
from guard.core.agents.baseline import AGENT_BASELINE, baseline_key
from guard.core.agents.findings import FINDINGS, FoundOut
from guard.core.base.paths import unspell
from guard.core.breaker.state import BREAKER
from guard.core.check.last_check import LAST_CHECK
from guard.core.check.warnings import CHECK_WARNINGS, list_warnings
from guard.core.check.words import verdict_line
from guard.core.rescue.secrets import has_new_sensitive_name
from guard.core.resume.evidence import (
    Failure,
    LeftFiles,
    LostHelper,
    Mission,
    NextTask,
    ResumeEvidence,
    Silence,
)
from guard.core.resume.prompt import MOST_FILES, MOST_LINES
from guard.core.team.state import TEAM
from guard.core.work.leftovers import files_changed_since
from guard.errors import GuardError
from guard.git.dirty import read_dirty
from guard.git.locate import Repository, repository_at
from guard.git.reader import RepositoryReader

_FINE = frozenset({"complete", "working"})
_LOST = frozenset({"killed", "failed", "lease_expired"})
_MOST_NAMES = 1000


@dataclass
class StalledAgent:
    """A stalled agent, and what is recorded about it."""

    guard: Invocation
    agent: Agent
    now: datetime

    def evidence(
        self, report: ActivityReport | None, task: NextTask | None, number: int, of: int
    ) -> ResumeEvidence:
        findings = self._findings
        return ResumeEvidence(
            agent=self.agent,
            now=self.now,
            silence=self._silence(report),
            task=task,
            mission=self._mission(),
            priorities=split_list(self.guard.config.settings.resume.priorities),
            left=self._left_files(),
            lost=tuple(self._lost_helpers())[:MOST_LINES],
            failures=self.failures,
            findings=findings[-MOST_LINES:],
            findings_more=max(0, len(findings) - MOST_LINES),
            warnings=tuple(self._check_warnings()),
            number=number,
            of=of,
        )

    @cached_property
    def retry_at(self) -> datetime | None:
        """Until when a usage limit keeps the agent from working, if one does."""
        limits = [
            failure.retry_at
            for failure in self.failures
            if failure.kind == "limited" and failure.retry_at
        ]
        return max((limit for limit in limits if limit > self.now), default=None)

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        return (*self._failed_check(), *self._open_breaker())

    @cached_property
    def _known_agents(self) -> KnownAgents:
        return KnownAgents(self.guard)

    @cached_property
    def root(self) -> Path | None:
        return self._known_agents.work_tree_of(self.agent)

    @cached_property
    def _key(self) -> str | None:
        return self.guard.key_of(self.root) if self.root is not None else None

    @cached_property
    def _is_alone(self) -> bool:
        return self._known_agents.is_only_agent(self.agent)

    def _is_own(self, run: str | None) -> bool:
        # An agent without a run of its own owns what is recorded in its work tree if it is alone there.
        return self._is_alone if self.agent.run is None else run == self.agent.run

    def _silence(self, report: ActivityReport | None) -> Silence:
        if report is not None and report.inactivity_minutes is not None:
            return Silence(report.inactivity_minutes, report.reasons)
        passed = max(0.0, (self.now - self.agent.updated_at).total_seconds()) / 60
        return Silence(
            passed, ("its last word to guard's registry", *(report.reasons if report else ()))
        )

    def _mission(self) -> Mission | None:
        agent = self.agent
        if agent.message.strip() and not is_noise(agent.message):
            return Mission(agent.message, agent.updated_at, agent.progress)
        for signal in reversed(self._known_agents.reports_of(agent)):
            # Findings have a section of their own.
            is_report = signal.detail.startswith("reported")
            if is_report and signal.message.strip() and not is_noise(signal.message):
                at = datetime.fromtimestamp(signal.seconds, self.now.tzinfo)
                return Mission(signal.message, at, agent.progress)
        return None

    def _failed_check(self) -> Iterator[Failure]:
        check = self.guard.store.view(LAST_CHECK, self._key) if self._key else None
        if check is None or check.status in _FINE or not self._is_own(check.run):
            return
        output = check.output or {}
        reason = output.get("reason") if output.get("outcome") not in (None, "ok") else None
        detail = str(reason or check.detail)
        what = verdict_line(check.status, check.reason, "")
        yield Failure(what, check.status, detail, check.retry_at)

    def _open_breaker(self) -> Iterator[Failure]:
        breaker = self.guard.store.view(BREAKER, self._key) if self._key else None
        if breaker is not None and breaker.state == "open" and (self.agent.run or self._is_alone):
            yield Failure(
                f"the breaker is open: {breaker.reason or 'no reason'}",
                "breaker",
                retry_at=breaker.retry_at,
            )

    def _lost_helpers(self) -> Iterator[LostHelper]:
        for team in self.guard.store.views(TEAM).values():
            for member in team.members if team.worktree == self._key else ():
                since = member.left_at is not None and member.joined_at >= self.agent.spawned_at
                if since and member.left_because in _LOST and self._is_own(member.run):
                    why = member.left_detail or member.description
                    yield LostHelper(
                        member.member,
                        member.kind,
                        f"{member.left_because}{f': {why}' if why else ''}",
                    )

    @cached_property
    def _findings(self) -> tuple[FoundOut, ...]:
        found = self.guard.store.view(FINDINGS, self.agent.task_id)
        own = (self.agent.agent_id, self.agent.incarnation)
        return tuple(
            finding
            for finding in (found.findings if found else ())
            if (finding.agent_id, finding.incarnation) == own
        )

    def _left_files(self) -> LeftFiles | None:
        if self.root is None:
            return None
        try:
            names = self._dirty_files(repository_at(self.root))
        except GuardError as error:
            self.guard.output.warn(f"cannot list uncommitted files for the prompt: {error.message}")
            return None
        if not names:
            return None
        allowed = self.guard.users_config.settings.rescue.allow_secrets
        secret = tuple(name for name in names if has_new_sensitive_name(unspell(name), allowed))
        own = tuple(name for name in names if name not in secret)
        more = max(0, len(own) - MOST_FILES)
        return LeftFiles(own[:MOST_FILES], more, self._is_alone, secret[:MOST_FILES])

    def _check_warnings(self) -> Iterator[str]:
        """Yield what the agent must not commit, or has committed though it must not."""
        known = self.guard.store.view(CHECK_WARNINGS, self._key) if self._key else None
        if self._key is None or known is None or not self._is_own(known.run):
            return
        if known.is_of(self.guard.store.view(LAST_CHECK, self._key)):
            yield from list_warnings(known.secrets, (), known.held_back)

    def _dirty_files(self, repository: Repository) -> tuple[str, ...]:
        """The uncommitted files, without those that were uncommitted when the agent began."""
        agent = self.agent
        begun = self.guard.store.view(AGENT_BASELINE, baseline_key(agent.task_id, agent.agent_id))
        before = begun.dirty if begun is not None and begun.incarnation == agent.incarnation else ()
        seconds = self.guard.users_config.settings.completion_check.git_timeout_seconds
        now = read_dirty(RepositoryReader(repository, self.guard.environ, seconds), before)
        return tuple(file.path for file in files_changed_since(before, now.files))[:_MOST_NAMES]
