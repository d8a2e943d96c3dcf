"""Audit what a task's agent committed: by the user's command, by a proof, or by an agent; and record the verdict."""

from guard.context.invocation import Invocation
from guard.coordinator.record import record
from guard.core.base.fields import parse_document
from guard.core.base.text import fit_line, utf8_text
from guard.core.coordinator.decide_tasks import fail_audit, pass_audit
from guard.core.coordinator.requests import Request
from guard.core.prove.report import ProofReport, feedback
from guard.git.reader import RepositoryReader
from guard.plan.slots import Slot, SlotWork, WorkKind
from guard.plan.work_tree import slot_invocation, task_branch
from guard.plan.worker import Workers, read_bytes, read_exit_code, read_tail

_MOST_REASON = 8000
NO_COMMITS = "the branch of the task has no commits that the target lacks: commit the work on the branch that is checked out"


class Auditor:
    """Decides how tasks are audited, starts audits that are no agents', and records what they say."""

    def __init__(self, guard: Invocation, command: str | None, target: str) -> None:
        self._guard, self._target = guard, target
        self._command = command or guard.users_config.settings.coordinator.audit_command

    @property
    def kind(self) -> WorkKind:
        if self._command:
            return "audit"
        is_proven = self._guard.config.settings.prove.checks_at("iteration")
        return "proof" if is_proven else "auditor"

    def has_commits(self, task_id: str) -> bool:
        """Tell whether the task's branch has a commit that the target lacks."""
        git = RepositoryReader(self._guard.repository, self._guard.environ)
        branch = task_branch(task_id)
        if git.line("rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}") is None:
            return False
        return (
            git.line("rev-list", "--max-count=1", branch, "--not", self._target, "--") is not None
        )

    def start(self, workers: Workers, slot: Slot, lock: int, work: SlotWork) -> None:
        if work.kind == "audit":
            workers.start_command(slot, lock, work, self._command)
            return
        git = RepositoryReader(self._guard.repository, self._guard.environ)
        base = git.line("merge-base", self._target, task_branch(work.task_id or ""))
        words = ["prove", "--format", "json", *(("--baseline", base) if base else ())]
        workers.start_guard(slot, lock, work, words)

    def verdict(self, work: SlotWork) -> Request | None:
        """Return the verdict of an audit that has ended; None if it came to none, and is made again."""
        assert work.task_id is not None
        if work.kind == "proof":
            return _verdict_of_proof(work, work.task_id)
        code = read_exit_code(work)
        if code is None:
            return None
        if code == 0:
            said = fit_line(f"{self._command} succeeded")
            return pass_audit(task_id=work.task_id, agent_id=work.agent_id, evidence_summary=said)
        tail = read_tail(work)
        reason = f"`{fit_line(self._command, 200)}` ended with {code}:\n{tail}"
        return _fail(work, reason)

    def record(self, slot: Slot, verdict: Request) -> None:
        """Record a verdict with the commit that is checked out in the slot."""
        record(slot_invocation(self._guard, slot.path), verdict)


def _fail(work: SlotWork, reason: str) -> Request:
    assert work.task_id is not None
    text = utf8_text(reason)[-_MOST_REASON:]
    return fail_audit(task_id=work.task_id, agent_id=work.agent_id, reason=text)


def _verdict_of_proof(work: SlotWork, task_id: str) -> Request | None:
    data = read_bytes(work.document)
    try:
        proof = parse_document(ProofReport, data) if data else None
    except ValueError:
        proof = None
    if proof is None:
        return None
    if proof.result in ("proven", "review"):
        # Rewritten tests wait for a person before they land.
        said = fit_line(f"{proof.result}: {proof.detail}")
        return pass_audit(task_id=task_id, agent_id=work.agent_id, evidence_summary=said)
    return _fail(work, feedback(proof) if proof.result == "refuted" else proof.detail)
