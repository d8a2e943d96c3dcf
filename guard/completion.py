"""Check an iteration step by step from Python, with the results as plain dictionaries.

Each function takes the project's folder first. A failure of git is an error of `guard.errors`, never "no commits" or "no
changes".
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guard.api import Where, check, invocation, rescue

if TYPE_CHECKING:
    from guard.context.invocation import Invocation
    from guard.core.work.leftovers import Uncommitted

Project = str | Path


def get_new_commits_count(
    project_path: Project, baseline_commit: str | None = None, *, workspace: Where = None
) -> int:
    """Return how many commits have work of the agent's own since a commit, or since the recorded baseline.

    Those that a rescue made of the agent's work count too.
    """
    from guard.check.verdict import look
    from guard.iteration.current import CheckTerms

    terms = CheckTerms(baseline=baseline_commit)
    seen = look(_guard(project_path, workspace), terms)
    return seen.own_commits + seen.work.rescued


def check_uncommitted_changes(project_path: Project, *, workspace: Where = None) -> dict[str, Any]:
    """Return the files that the iteration left uncommitted; without a recorded baseline, all uncommitted files.

    The keys are `has_changes`, `count`, `files` (all names), `staged`, `unstaged`, `untracked`, and `users`: how many other
    files were uncommitted before the iteration.
    """
    left = _find_uncommitted(_guard(project_path, workspace))
    return {
        "has_changes": left.has_any,
        "count": len(left.names),
        "files": list(left.names),
        "staged": list(left.staged),
        "unstaged": list(left.unstaged),
        "untracked": list(left.untracked),
        "users": left.users,
    }


def probe_session_status(
    project_path: Project,
    session: str | None = None,
    *,
    agent: str | None = None,
    settings: Mapping[str, Any] | None = None,
    workspace: Where = None,
) -> dict[str, Any]:
    """Ask the agent's session about its state, once; by default the agent and session that guard recorded.

    `status` is `complete`, `waiting` or `working` as guard reads the answer, or `error` if there is none; then `failure` and
    `message` say why.
    """
    from guard.core.probe.answer import Answer
    from guard.iteration.current import recorded_agent
    from guard.probe import probe_session

    guard = _guard(project_path, workspace)
    known_agent, known_session = recorded_agent(guard)
    flags = {"completion_check.agent": agent or known_agent, **(settings or {})}
    if not guard.settings(None, flags).completion_check.agent:
        nothing = Answer(status="working", message="no agent to ask is known")
        told = {"failure": "no_session", "retry_at": None, "agent": None, "session": session}
        return {**nothing.model_dump(mode="json"), "status": "error", **told}
    report = probe_session(guard, session or known_session, flags)
    answer = report.answer or Answer(status="working", message=report.detail)
    return {
        **answer.model_dump(mode="json"),
        "status": report.reading or "error",
        "failure": report.failure,
        "retry_at": report.retry_at.isoformat() if report.retry_at else None,
        "agent": report.agent,
        "session": report.session,
    }


def run_commit_rescue(
    project_path: Project, spec_name: str | None = None, *, workspace: Where = None
) -> bool:
    """Commit the work that the iteration left; return whether nothing is left to do. `guard.rescue` says more."""
    return rescue(spec=spec_name, workspace=workspace, repo=project_path).is_settled


def smart_completion_check(
    project_path: Project,
    spec_name: str | None = None,
    baseline_commit: str | None = None,
    max_probes: int | None = None,
    probe_interval: float | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    workspace: Where = None,
    **terms: Any,
) -> dict[str, Any]:
    """Run the completion check and return its report as the document that `guard check --format json` prints.

    `terms` are further arguments of `guard.check`, such as `agent` and `wait`.
    """
    flags = {
        "completion_check.max_probes": max_probes,
        "completion_check.probe_interval_seconds": probe_interval,
        **(settings or {}),
    }
    report = check(
        baseline=baseline_commit,
        spec=spec_name,
        settings=flags,
        workspace=workspace,
        repo=project_path,
        **terms,
    )
    return report.model_dump(mode="json")


def _guard(project_path: Project, workspace: Where) -> "Invocation":
    return invocation(workspace, project_path)


def _find_uncommitted(guard: "Invocation") -> "Uncommitted":
    from guard.check.verdict import look, look_without_baseline
    from guard.iteration.baseline import load
    from guard.iteration.current import CheckTerms

    if load(guard.store, guard.worktree_key) is None:
        return look_without_baseline(guard)
    return look(guard, CheckTerms()).uncommitted
