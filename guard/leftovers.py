"""What an iteration left uncommitted, turned into commits: by the user's own rescue program, or by guard's rescue."""

import shlex
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime

from guard.core.events.baseline import DirtyFile
from guard.core.rescuing import MOST_NAMED, HeldBack, Occasion, Rescue, Snapshot
from guard.core.settings import Settings
from guard.core.text import plural
from guard.core.work import CommitLine, count_work
from guard.git.dirty import Dirty
from guard.git.history import history
from guard.processes import run
from guard.rescue import rescue, snapshot
from guard.rescue.limits import Limits
from guard.subject import Subject


def kept(subject: Subject, settings: Settings, now: datetime) -> Snapshot:
    """A snapshot of the work tree as it is now."""
    return snapshot(
        subject.repository,
        subject.workspace,
        subject.environ,
        occasion=Occasion("check", now, subject.run, subject.iteration),
        time_limit=settings.rescue.time_limit_seconds,
        limits=Limits.of(settings.rescue),
    )


def committed(
    subject: Subject,
    settings: Settings,
    left: tuple[DirtyFile, ...],
    dirty: Dirty,
    held: Mapping[str, str],
    now: datetime,
    warn: Callable[[str], None],
) -> Rescue:
    """Commit what was left of all that is dirty, or say why not; `held` are paths that are not the agent's alone, and why."""
    argv = shlex.split(settings.rescue.command)
    if argv:
        if shutil.which(argv[0], path=subject.environ.get("PATH")) is not None:
            return _by_program(subject, settings, argv, now)
        warn(f"there is no rescue command {argv[0]!r}; guard's own rescue is used instead")
    agents = [one for one in left if one.path not in held]
    done = rescue(
        subject.repository,
        subject.workspace,
        subject.environ,
        at=now,
        run=subject.run,
        iteration=subject.iteration,
        baseline_branch=subject.baseline.branch,
        paths=sorted(dirty.paths(agents)),
        time_limit=settings.rescue.time_limit_seconds,
        limits=Limits.of(settings.rescue),
    )
    return _without(done, held)


def _without(done: Rescue, held: Mapping[str, str]) -> Rescue:
    """The rescue with what was held back: to commit it would commit the user's work too."""
    if not held:
        return done
    named = [HeldBack(path=path[:512], why=held[path]) for path in sorted(held)[:MOST_NAMED]]
    note = f"{plural(len(held), 'file')} held back: {named[0].why}"
    return done.model_copy(
        update={
            "held_back": (*done.held_back, *named),
            "reason": done.reason if done.commits else "held_back",
            "detail": f"{done.detail}; {note}"[:512] if done.commits else note,
        }
    )


def _by_program(subject: Subject, settings: Settings, argv: list[str], now: datetime) -> Rescue:
    """The program's commits are what it is judged by, not what it says."""
    safe = kept(subject, settings, now)
    before = _commits(subject, settings)
    done = run(
        [*argv, subject.spec] if subject.spec else argv,
        environ={**subject.environ, "GUARD_RESCUE": f"{subject.run}/{subject.iteration}"},
        time_limit=settings.rescue.time_limit_seconds,
        cwd=subject.repository.root,
    )
    made = [line for line in _commits(subject, settings) if line not in before]
    home = [line for line in made if line.branch == (subject.baseline.branch or "HEAD")]
    how = "did not end in time" if done.code is None else f"ended with exit code {done.code}"
    elsewhere = made[0].branch if made and not home else None
    where = f" on {elsewhere}" if elsewhere else ""
    return Rescue(
        commits=tuple(line.oid for line in home or made),
        snapshot=safe,
        held_back=(),
        branch=elsewhere,
        reason="rescued" if home else "not_plain:branch_changed" if made else "refused",
        detail=f"the rescue command {how}, and made {plural(len(made), 'commit')}{where}",
    )


def _commits(subject: Subject, settings: Settings) -> tuple[CommitLine, ...]:
    limit = settings.completion_check.git_timeout_seconds
    facts = history(subject.repository, subject.baseline, subject.environ, limit, subject.others())
    return count_work(facts).commits
