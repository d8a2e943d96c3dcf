"""Gather the evidence for a claim of completion from git, the log and test traces, and validate the claim."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from guard.claims.changes import changes_since, tracked_files
from guard.claims.session import KeptSession, session_of
from guard.claims.test_traces import find_test_runs
from guard.context.invocation import Invocation
from guard.core.agents.agent import Agent
from guard.core.agents.baseline import AGENT_BASELINE, AgentBaseline, baseline_key
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.base.paths import spell, unspell
from guard.core.claims.completion_validation import CompletionValidation
from guard.core.claims.evidence import ClaimEvidence, TestRun, WorkSinceBaseline, add_tests
from guard.core.claims.files import named_paths
from guard.core.claims.validate import needs_person, validate
from guard.core.classify.question import find_question
from guard.core.hooks.git.state import COMMITS
from guard.core.hooks.state import HOOKS
from guard.core.prove.known_proof import proof_of_tree
from guard.core.prove.proofs import PROOFS, ProofEntry
from guard.core.tool_calls.read import ToolCall
from guard.errors import GuardError
from guard.git.locate import Repository, repository_at
from guard.git.named_files import find_named
from guard.git.reader import RepositoryReader
from guard.git.status import find_ignored
from guard.hooks.ingest import ingest_hooks
from guard.iteration.other_trees import refs_of_others

_LONGEST_REASON = 400
_SESSION_NAMES = (
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_THREAD_ID",
    "GEMINI_SESSION_ID",
    "QWEN_CODE_SESSION_ID",
)
"""The variables in which agent CLIs tell the programs that they start the id of the session."""


class ValidatedClaim(NamedTuple):
    validation: CompletionValidation
    needs_person: bool
    """Whether the agent is blocked instead: it asks, or could not do its work, and has done nothing."""


def validate_claim(
    guard: Invocation,
    agent: Agent,
    message: str,
    now: datetime,
    *,
    silent: bool = False,
    session: KeptSession | None = None,
) -> ValidatedClaim:
    """Validate that the agent has completed its work; `silent` if it ended without claiming so.

    `session` is that of an iteration that has ended; while one goes on, guard finds it by itself.
    """
    ingest_hooks(guard)
    session = session or session_of(guard, agent)
    calls = session.calls if session is not None else None
    evidence = ClaimEvidence(
        agent_type=agent.agent_type,
        message=message,
        spawned_at=agent.spawned_at,
        at=now,
        updates=agent.updates,
        working_updates=agent.working_updates,
        findings=agent.findings,
        calls=None if calls is None else len(calls),
        asks=find_question(message) is not None,
        silent=silent,
    )
    measured = _measure(guard, agent, evidence)
    others = (*_other_runs(guard, agent, calls), *_proof_runs(measured))
    known = add_tests(measured, calls, others)
    validation = validate(known, guard.users_config.settings.claims)
    return ValidatedClaim(validation, needs_person(known))


def _measure(guard: Invocation, agent: Agent, evidence: ClaimEvidence) -> ClaimEvidence:
    """Add what git and the work tree show, or the reason why they could not be asked."""
    baseline = guard.store.view(AGENT_BASELINE, baseline_key(agent.task_id, agent.agent_id))
    if baseline is None or baseline.incarnation != agent.incarnation:
        return replace(
            evidence, unmeasured="guard did not record where the repository stood at its start"
        )
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    try:
        git = RepositoryReader(_find_repository(guard, baseline), guard.environ, limit)
        names = named_paths(evidence.message)
        measured = replace(
            evidence,
            changes=_changes(guard, agent, baseline, git),
            existing=find_named(git, names),
            ignored=find_ignored(git, names),
            root=str(git.repository.root),
            proof=_find_proof(guard, git),
        )
    except GuardError as error:
        return replace(evidence, unmeasured=error.message[:_LONGEST_REASON])
    return replace(measured, tests=_find_traces(git, evidence.spawned_at, evidence.at))


def _find_proof(guard: Invocation, git: RepositoryReader) -> ProofEntry | None:
    """Return the newest proof of the tree that is committed now, by the command that the user names."""
    proofs = guard.store.view(PROOFS, guard.key_of(git.repository.root))
    tree = git.line("rev-parse", "--verify", "--quiet", "HEAD^{tree}") if proofs else None
    if tree is None:
        return None
    return proof_of_tree(proofs, tree, guard.users_config.settings.prove)


def _proof_runs(evidence: ClaimEvidence) -> Iterator[TestRun]:
    # A proof from before the agent began is no run of its own; tests of the work under review passed, too.
    proof = evidence.proof
    if proof is None or proof.at < evidence.spawned_at:
        return
    if proof.result in ("proven", "review"):
        yield TestRun("proof", proof.at, passed=True, detail=proof.result)


def _changes(
    guard: Invocation, agent: Agent, baseline: AgentBaseline, git: RepositoryReader
) -> WorkSinceBaseline:
    taken = frozenset(_roots_of_others(guard, agent)) - {baseline.root}
    others = refs_of_others(guard, git.repository, agent.spawned_at, taken)
    return changes_since(baseline.ground, agent.spawned_at, git, others, _noted_commits(guard))


def _noted_commits(guard: Invocation) -> frozenset[str]:
    if guard.repository_if_any is None:
        return frozenset()
    view = guard.store.view(COMMITS, guard.worktree_key)
    return view.known_oids() if view is not None else frozenset()


def _roots_of_others(guard: Invocation, agent: Agent) -> Iterator[str]:
    """Yield the work trees in which other agents were spawned that have been active since this one began."""
    overall = guard.store.view(GLOBAL_REGISTRY)
    own = (agent.task_id, agent.agent_id)
    others = [
        (other.task_id, other.agent_id)
        for other in (overall.agents if overall else ())
        if (other.completed_at or other.terminated_at or agent.spawned_at) >= agent.spawned_at
    ]
    keys = [baseline_key(*name) for name in others if name != own]
    for begun in guard.store.views(AGENT_BASELINE, keys).values() if keys else ():
        yield begun.root


def _find_traces(
    git: RepositoryReader, since: datetime, now: datetime
) -> tuple[TestRun, ...] | None:
    try:
        known = tracked_files(git)
    except GuardError:
        return None
    temporary = Path(git.environ.get("TMPDIR") or tempfile.gettempdir())
    return find_test_runs(git.repository.root, since, now, known, temporary)


def _find_repository(guard: Invocation, baseline: AgentBaseline) -> Repository:
    return guard.repository_if_any or repository_at(Path(os.fsdecode(unspell(baseline.root))))


def _other_runs(
    guard: Invocation, agent: Agent, calls: tuple[ToolCall, ...] | None
) -> Iterator[TestRun]:
    """Yield the test runs under guard itself, and those that hooks report where guard does not see the calls."""
    if agent.last_test is not None:
        code = agent.last_test.exit_code
        yield TestRun("guard", agent.last_test.at, code == 0, f"exit code {code}")
    if calls is None:
        yield from _heard_runs(guard, agent)


def _heard_runs(guard: Invocation, agent: Agent) -> tuple[TestRun, ...]:
    """Return the test runs that hooks reported from the agent's work tree since it was spawned.

    Where other agents work in the same tree, only the session that reports counts: a run of another one proves nothing.
    """
    if guard.repository_if_any is None:
        return ()
    view = guard.store.view(HOOKS, guard.worktree_key)
    root = spell(os.fsencode(guard.repository_if_any.root))
    is_shared = root in _roots_of_others(guard, agent)
    reporting = [guard.environ[name] for name in _SESSION_NAMES if guard.environ.get(name)]
    return tuple(
        TestRun("call", run.at, run.passed, f"reported by a hook of {work.agent}")
        for work in (view.worked if view is not None else ())
        if not is_shared or work.session in reporting
        for run in work.runs
        if run.at >= agent.spawned_at
    )
