"""Gather the evidence for a claim of completion from git, the log and test traces, and validate the claim."""

import os
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from guard.claims.changes import changes_since, existing_files, tracked_files
from guard.claims.test_traces import find_test_runs
from guard.context.invocation import Invocation
from guard.core.agents.agent import Agent
from guard.core.agents.baseline import AGENT_BASELINE, AgentBaseline, baseline_key
from guard.core.base.paths import unspell
from guard.core.claims.completion_validation import CompletionValidation
from guard.core.claims.evidence import ClaimEvidence, TestRun, WorkSinceBaseline
from guard.core.claims.files import named_paths
from guard.core.claims.settings import make_policy
from guard.core.claims.validate import validate
from guard.errors import GuardError
from guard.git.locate import Repository, repository_at
from guard.git.reader import RepositoryReader
from guard.git.status import find_ignored

_LONGEST_REASON = 400


def validate_claim(
    guard: Invocation, agent: Agent, message: str, now: datetime, *, silent: bool = False
) -> CompletionValidation:
    """Validate that the agent has completed its work; `silent` if it ended without claiming so."""
    measured = _measure(guard, agent, message, now)
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
        tests=_known_tests(agent, measured.traces),
        silent=silent,
    )
    return validate(evidence, make_policy(guard.users_config.settings.claims))


@dataclass(frozen=True)
class _Measurement:
    """The measurements of the work tree and of git; `unmeasured` is the reason if they could not be asked."""

    changes: WorkSinceBaseline | None = None
    unmeasured: str | None = None
    existing: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    root: str | None = None
    traces: tuple[TestRun, ...] | None = None


def _measure(guard: Invocation, agent: Agent, message: str, now: datetime) -> _Measurement:
    baseline = guard.store.view(AGENT_BASELINE, baseline_key(agent.task_id, agent.agent_id))
    if baseline is None or baseline.incarnation != agent.incarnation:
        return _Measurement(unmeasured="nobody recorded where the repository stood at its start")
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    try:
        repository = _find_repository(guard, baseline)
        changes = changes_since(baseline.ground, agent.spawned_at, repository, guard.environ, limit)
        names = named_paths(message)
        there = existing_files(repository, names, guard.environ, limit)
        hidden = find_ignored(RepositoryReader(repository, guard.environ, limit), names)
    except GuardError as error:
        return _Measurement(unmeasured=error.message[:_LONGEST_REASON])
    return _Measurement(
        changes=changes,
        existing=there,
        ignored=hidden,
        root=str(repository.root),
        traces=_find_traces(guard, repository, agent.spawned_at, now),
    )


def _find_traces(
    guard: Invocation, repository: Repository, since: datetime, now: datetime
) -> tuple[TestRun, ...] | None:
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    try:
        known = tracked_files(repository, guard.environ, limit)
    except GuardError:
        return None
    temporary = Path(guard.environ.get("TMPDIR") or tempfile.gettempdir())
    return find_test_runs(repository.root, since, now, known, temporary)


def _find_repository(guard: Invocation, baseline: AgentBaseline) -> Repository:
    return guard.repository_if_any or repository_at(Path(os.fsdecode(unspell(baseline.root))))


def _known_tests(agent: Agent, traces: tuple[TestRun, ...] | None) -> tuple[TestRun, ...] | None:
    # A run under guard counts even if guard could not look for traces.
    last = agent.last_test
    if last is None:
        return traces
    seen = TestRun("guard", last.at, last.exit_code == 0, f"exit code {last.exit_code}")
    return (*(traces or ()), seen)
