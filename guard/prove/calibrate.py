"""Replay a repository's own history through the proof, to see what it would have said of honest work."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from guard.context.invocation import Invocation
from guard.core.prove.calibration import (
    CalibratedCommit,
    Calibration,
    Ended,
    calibrated_commit,
    make_calibration,
)
from guard.core.prove.report import Proof
from guard.core.prove.settings import ProveSettings
from guard.core.rescue.redact import known_secrets, redact
from guard.git.reader import RepositoryReader
from guard.git.refs import first_parent, has_commit
from guard.prove.propose import propose_setup
from guard.prove.prove import open_checkouts, run_checks
from guard.prove.work import CommittedWork, ProveTerms
from guard.system.clock import Deadline


def calibrate(
    guard: Invocation,
    terms: ProveTerms,
    commits: int,
    max_time: float | None = None,
    say: Callable[[str], None] | None = None,
) -> Calibration:
    """Prove each of the newest commits against its first parent, and return what that says; nothing is recorded.

    It ends after `max_time` seconds (`prove.total_seconds`), or by Ctrl-C, with the part that is done.
    """
    begun = time.monotonic()
    settings = terms.settings or guard.settings(None, terms.flags).prove
    whole = CommittedWork(guard, terms, settings)
    assert whole.checks
    live = guard.output.live()
    limit = Deadline(settings.total_seconds if max_time is None else max_time)
    replay = _Replay(guard, terms, settings, commits, limit, say or live.say)
    try:
        ended = replay.run(whole.git, whole.head)
    except KeyboardInterrupt:
        ended = "interrupted"
    finally:
        live.clear()
    return make_calibration(
        replay.done,
        settings,
        head=whole.head,
        asked=commits,
        ended=ended,
        seconds=time.monotonic() - begun,
        install=propose_setup(guard),
    )


@dataclass
class _Replay:
    guard: Invocation
    terms: ProveTerms
    settings: ProveSettings
    asked: int
    limit: Deadline
    say: Callable[[str], None]
    done: list[tuple[CalibratedCommit, Proof]] = field(default_factory=list)

    def run(self, git: RepositoryReader, head: str) -> Ended:
        open_checkouts(self.guard)
        # The newest first: they say most of what is to come, and there may be no time for all. What a commit needs of its
        # parent is what is needed next.
        for commit, parent in _lineage(git, head):
            if self.limit.has_passed():
                return "max_time"
            proof = self._prove(commit, parent)
            if proof.reason == "timeout" and self.limit.has_passed():
                return "max_time"
            self.done.append((calibrated_commit(proof, parent, self._subject(git, commit)), proof))
            if len(self.done) == self.asked:
                return "complete"
        return "history"

    def _prove(self, commit: str, parent: str) -> Proof:
        terms = replace(self.terms, head=commit, baseline=parent)
        work = CommittedWork(self.guard, terms, self.settings)
        # One for each commit: it remembers all trees that it has read.
        checkouts = open_checkouts(self.guard, cleans_up=False)
        seconds = min(self.settings.total_seconds, self.limit.left())
        number = f"commit {len(self.done) + 1} of {self.asked}, {commit[:12]}"
        return run_checks(
            work,
            checkouts,
            Deadline(seconds),
            lambda line: self.say(f"{number}: {line}"),
            whole_before=True,
        )

    def _subject(self, git: RepositoryReader, commit: str) -> str:
        message = git.ask("cat-file", "commit", commit).partition(b"\n\n")[2]
        line = message.strip().partition(b"\n")[0].decode(errors="replace")
        return redact(line, known_secrets(self.guard.environ))


def _lineage(git: RepositoryReader, head: str) -> Iterator[tuple[str, str]]:
    """Yield a commit and its first parent, then that one and its own, and so on."""
    commit, parent = head, first_parent(git, head)
    while parent is not None:
        yield commit, parent
        if not has_commit(git, parent):
            return
        commit, parent = parent, first_parent(git, parent)
