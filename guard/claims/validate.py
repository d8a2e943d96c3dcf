"""A claim of completion, held against what git, the log and the traces of test runs say."""

import os
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from guard.claims.changes import changes_since, existing, tracked
from guard.claims.test_traces import test_runs
from guard.context.invocation import Invocation
from guard.core.agents.agent import Agent
from guard.core.agents.baseline import AGENT_BASELINE, AgentBaseline, baseline_key
from guard.core.base.paths import unspelled
from guard.core.claims.evidence import ClaimEvidence, TestRun, WorkSinceBaseline
from guard.core.claims.files import named_paths
from guard.core.claims.policy import policy_from
from guard.core.claims.validation import validate
from guard.core.events.validation import CompletionValidation
from guard.errors import GuardError
from guard.git.ignored import ignored
from guard.git.locate import Repository, at
from guard.git.reader import RepositoryReader

_LONGEST_REASON = 400


def validated(
    guard: Invocation, agent: Agent, message: str, now: datetime, *, silent: bool = False
) -> CompletionValidation:
    """How far it is to be believed that the agent has completed its work; `silent` if nobody claimed that."""
    measured = _measured(guard, agent, message, now)
    evidence = ClaimEvidence(
        agent_type=agent.agent_type,
        message=message,
        spawned_at=agent.spawned_at,
        at=now,
        updates=agent.updates,
        working_updates=agent.working_updates,
        findings=agent.findings,
        changes=measured.changes,
        unmeasured=measured.unmeasured,
        existing=measured.existing,
        ignored=measured.ignored,
        root=measured.root,
        tests=_tests(agent, measured.traces),
        silent=silent,
    )
    return validate(evidence, policy_from(guard.users_config.settings.claims))


@dataclass(frozen=True)
class _Measured:
    """What the work tree and git say; why they could not be asked, if they could not."""

    changes: WorkSinceBaseline | None = None
    unmeasured: str | None = None
    existing: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    root: str | None = None
    traces: tuple[TestRun, ...] | None = None


def _measured(guard: Invocation, agent: Agent, message: str, now: datetime) -> _Measured:
    baseline = guard.store.view(AGENT_BASELINE, baseline_key(agent.task_id, agent.agent_id))
    if baseline is None or baseline.incarnation != agent.incarnation:
        return _Measured(unmeasured="nobody recorded where the repository stood at its start")
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    try:
        repository = _repository(guard, baseline)
        changes = changes_since(baseline.ground, agent.spawned_at, repository, guard.environ, limit)
        names = named_paths(message)
        there = existing(repository, names, guard.environ, limit)
        hidden = ignored(RepositoryReader(repository, guard.environ, limit), names)
    except GuardError as error:
        return _Measured(unmeasured=error.message[:_LONGEST_REASON])
    return _Measured(
        changes=changes,
        existing=there,
        ignored=hidden,
        root=str(repository.root),
        traces=_traces(guard, repository, agent.spawned_at, now),
    )


def _traces(
    guard: Invocation, repository: Repository, since: datetime, now: datetime
) -> tuple[TestRun, ...] | None:
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    try:
        known = tracked(repository, guard.environ, limit)
    except GuardError:
        return None
    temporary = Path(guard.environ.get("TMPDIR") or tempfile.gettempdir())
    return test_runs(repository.root, since, now, known, temporary)


def _repository(guard: Invocation, baseline: AgentBaseline) -> Repository:
    """The work tree from which is reported; where there is none, that in which the agent began."""
    return guard.repository_if_any or at(Path(os.fsdecode(unspelled(baseline.root))))


def _tests(agent: Agent, traces: tuple[TestRun, ...] | None) -> tuple[TestRun, ...] | None:
    """All runs of tests that are known; what guard saw itself counts whatever else could be looked at."""
    last = agent.last_test
    if last is None:
        return traces
    seen = TestRun("guard", last.at, last.exit_code == 0, f"exit code {last.exit_code}")
    return (*(traces or ()), seen)
