"""Commit what an iteration left uncommitted: by the user's own rescue program, or by guard's rescue."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from guard.check.save import rescue_site, take_snapshot
from guard.check.subject import CheckSubject
from guard.check.taskfile import find_task_file
from guard.core.base.text import fit_line, plural, shorten
from guard.core.config.settings import Settings
from guard.core.iteration.facts import DirtyFile
from guard.core.rescue.agent_plan import PLAN_SCHEMA, DiscardedPlan, planning_prompt, read_plan
from guard.core.rescue.change import Changed
from guard.core.rescue.groups import Group, group_changes
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.snapshot import HeldBack, Occasion, Rescue, list_held_back
from guard.core.work.count import CommitLine, count_work
from guard.errors import GuardError
from guard.git.dirty import Dirty
from guard.git.history import read_history
from guard.rescue import rescue
from guard.rescue.order import Orders
from guard.rescue.users_program import ExpectedCommits, UsersProgram
from guard.system.processes import run
from guard.system.programs import search_program

_PLANNING_SHARE = 0.25
_LONGEST_WORDS = 500
"""Of the time for the whole rescue: the commits are still to be made then."""


class _NoProgram(Exception):
    """The user's rescue program cannot be run."""


@dataclass(frozen=True)
class Leftovers:
    """The files that an iteration left; `held` are the paths that are not the agent's alone, each with the reason."""

    subject: CheckSubject
    left: tuple[DirtyFile, ...]
    dirty: Dirty
    held: Mapping[str, str]
    now: datetime

    @property
    def settings(self) -> Settings:
        return self.subject.settings

    def warn(self, message: str) -> None:
        self.subject.guard.output.warn(message)

    def commit(self, *, dry: bool = False, on_branch: bool = False) -> Rescue:
        """Commit the files; the rescue says why not, where it commits nothing."""
        if self.settings.rescue.command and not dry and not on_branch:
            try:
                return self._commit_by_program(self._find_program())
            except _NoProgram as error:
                self.warn(f"{error}; guard uses its own rescue instead")
        elif self.settings.rescue.command:
            self.warn(
                "with --dry-run or --branch guard uses its own rescue, not the rescue command"
            )
        return self._commit_by_guard(dry, on_branch)

    def only_keep(self, reason: str, why: str) -> Rescue:
        """Take a snapshot and commit nothing."""
        return Rescue(
            commits=(),
            snapshot=take_snapshot(self.subject, "rescue"),
            held_back=(),
            branch=None,
            reason=reason,
            detail=fit_line(f"kept in the snapshot only: {why}"),
        )

    def _commit_by_guard(self, dry: bool, on_branch: bool) -> Rescue:
        subject, settings = self.subject, self.settings.rescue
        orders = Orders(
            run=subject.iteration.run,
            iteration=subject.iteration.number,
            baseline_branch=subject.baseline.branch,
            baseline_head=subject.baseline.head,
            since=subject.baseline.at,
            paths=self._paths(),
            held=self._held_back_paths(),
            grouping=self._plan_by_agent if settings.planner == "agent" else group_changes,
            on_branch=on_branch,
            dry=dry,
            hooks=settings.rescue_hooks == "run",
            tasks=self._task_file(),
            limits=SnapshotLimits(settings),
        )
        return rescue(rescue_site(subject), orders, self.now)

    def _paths(self) -> list[bytes]:
        return sorted(self.dirty.paths([file for file in self.left if file.path not in self.held]))

    def _held_back_paths(self) -> tuple[HeldBack, ...]:
        # To commit these would commit the user's work too.
        return tuple(
            HeldBack(path=fit_line(path), why=self.held[path]) for path in sorted(self.held)
        )

    def _task_file(self) -> bytes | None:
        # The spec's task file, or the only one that there can be; below the work tree, not through a link.
        root = self.subject.repository.root
        path = find_task_file(root, self.subject.spec or "", self.settings)
        if path is None or path.resolve() != path or not path.is_relative_to(root):
            return None
        return os.fsencode(path.relative_to(root))

    def _plan_by_agent(self, changes: Sequence[Changed]) -> list[Group]:
        """Ask the agent for its plan of the commits; the rules plan them where it has none that is sound."""
        from guard.probe import consult
        from guard.probe.base import Topic

        subject = self.subject
        prompt = planning_prompt(changes)
        if prompt is None or subject.agent is None:
            why = "no agent is known" if subject.agent is None else "too many files for a question"
            self.warn(f"the commits are planned by rules: {why}")
            return group_changes(changes)
        longest = self.settings.rescue.time_limit_seconds * _PLANNING_SHARE
        question = subject.question(longest, Topic(prompt, PLAN_SCHEMA))
        try:
            with subject.stop_clock():
                words, detail = consult(question)
        except GuardError as error:
            words, detail = None, error.message
        if words is None:
            self.warn(f"the commits are planned by rules: {detail}")
            return group_changes(changes)
        plan = read_plan(words, changes)
        if isinstance(plan, DiscardedPlan):
            self.warn(f"the agent's plan is discarded ({plan.why}): {plan.detail}")
            return group_changes(changes)
        return plan

    def _find_program(self) -> list[str]:
        # A program that lies in the work tree is found only by its path.
        root, command = self.subject.repository.root, self.settings.rescue.command
        try:
            name, *words = shlex.split(command)
        except ValueError as error:
            raise _NoProgram(f"the rescue command cannot be split into words ({error})") from None
        search = search_program(name, self.subject.environ, root)
        if search.program is None:
            where = f": {search.problem}" if search.refused else ""
            raise _NoProgram(f"there is no rescue command {name!r}{where}")
        return [search.program, *words]

    def _commit_by_program(self, argv: list[str]) -> Rescue:
        """Run the user's program; it is judged by its commits against a snapshot from before, not by what it prints."""
        subject, limit = self.subject, self.settings.rescue.time_limit_seconds
        expected = self._expect_commits()
        before = self._commits()
        try:
            with subject.stop_clock():
                done = run(
                    [*argv, subject.spec] if subject.spec else argv,
                    environ={**subject.environ, "GUARD_RESCUE": subject.iteration.mark},
                    time_limit=limit,
                    cwd=subject.repository.root,
                )
        except OSError as error:
            raise _NoProgram(f"the rescue command does not start: {error.strerror}") from None
        if done.message:
            self.warn(f"the rescue command says: {shorten(done.message, _LONGEST_WORDS)}")
        made = [line for line in self._commits() if line not in before]
        home = [line for line in made if line.branch == (subject.baseline.branch or "HEAD")]
        elsewhere = made[0].branch if made and not home else None
        held = (*self._held_back_paths(), *expected.list_missing(elsewhere or "HEAD"))
        if home and not held:
            expected.settle()
        how = "did not end in time" if done.code is None else f"ended with exit code {done.code}"
        where = f" on {elsewhere}" if elsewhere else ""
        summary = f"the rescue command {how}, and made {plural(len(made), 'commit')}{where}"
        note = f"; {plural(len(held), 'path')} held back: {held[0].why}" if held and made else ""
        return Rescue(
            commits=tuple(line.oid for line in reversed(home or made)),
            snapshot=expected.snapshot,
            held_back=list_held_back(held),
            branch=elsewhere,
            reason="rescued" if home else "not_plain:branch_changed" if made else "refused",
            detail=fit_line(summary + note),
        )

    def _expect_commits(self) -> ExpectedCommits:
        subject, limits = self.subject, SnapshotLimits(self.settings.rescue)
        occasion = Occasion("rescue", self.now, subject.iteration.run, subject.iteration.number)
        return UsersProgram(rescue_site(subject), occasion, limits).before(self._paths())

    def _commits(self) -> tuple[CommitLine, ...]:
        # Those with work in them, the newest first; a program may mark its own as guard does.
        subject = self.subject
        others, noted = subject.other_refs(), subject.noted_commits()
        facts = read_history(subject.git, subject.baseline, others, noted)
        unmarked = {oid: commit._replace(rescued=False) for oid, commit in facts.commits.items()}
        return count_work(replace(facts, commits=unmarked)).commits
