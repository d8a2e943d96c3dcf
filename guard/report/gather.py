"""Gather what the log and git know of runs, and make the report of it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from guard.context.invocation import Invocation
from guard.core.base.fields import parse_document
from guard.core.base.text import fit_line, utf8_text
from guard.core.report.compose import ReportFacts, Selection, compose
from guard.core.report.document import NightReport
from guard.core.report.needs import WorktreePaths
from guard.core.report.night import Night
from guard.core.report.review import CommitFacts
from guard.core.rescue.redact import known_secrets, redact_document
from guard.errors import GuardError, Refused
from guard.git.commit_stats import read_commit_stats
from guard.git.gitdir_files import other_work_trees
from guard.git.reader import RepositoryReader


def make_report(
    guard: Invocation, *, run: str | None = None, since: datetime | None = None
) -> NightReport:
    """Return the report of a run, or of all that happened since a time; without secrets.

    Without a range it is about the newest run, or about all since the last 24 hours if that is more.
    """
    night = Night()
    for entry in guard.store.entries():
        night.feed(entry.event)
    return report_night(guard, night, run=run, since=since)


def report_night(
    guard: Invocation,
    night: Night,
    *,
    run: str | None = None,
    since: datetime | None = None,
    commits: dict[str, CommitFacts] | None = None,
) -> NightReport:
    """Return the report of what was read of the log; `commits` remembers what git tells of them for the next report."""
    if run is not None and run not in night.runs:
        raise Refused(f"the log has no run {run}", "`guard log --type run_started` lists the runs")
    selection = Selection(night, guard.clock.now(), run=run, since=since)
    warnings: list[str] = []
    known = commits if commits is not None else {}
    missing = [oid for oid in selection.mentions if oid not in known]
    known.update((each.oid, each) for each in _read_commits(guard, missing, warnings))
    facts = ReportFacts(
        repository=name_repository(guard),
        now=guard.clock.now(),
        places=worktree_places(guard),
        commits=known,
        warnings=tuple(warnings),
    )
    return redact_night(compose(selection, facts), guard)


def name_repository(guard: Invocation) -> str:
    known = guard.repository_if_any
    return utf8_text(known.root.name if known is not None else guard.workspace.path.name)


def _read_commits(
    guard: Invocation, oids: Sequence[str], warnings: list[str]
) -> Sequence[CommitFacts]:
    known = guard.repository_if_any
    if known is None or not oids:
        return ()
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    try:
        return tuple(read_commit_stats(RepositoryReader(known, guard.environ, limit), oids))
    except GuardError as error:
        # The log alone is worth a report.
        warnings.append(fit_line(f"what the commits change: {error.message}"))
        return ()


def worktree_places(guard: Invocation) -> WorktreePaths:
    known = guard.repository_if_any
    return WorktreePaths(
        here=guard.worktree_key if known is not None else None,
        plan=guard.workspace.key,
        paths=dict(_worktree_paths(guard)),
    )


def _worktree_paths(guard: Invocation) -> Iterator[tuple[str, str]]:
    known = guard.repository_if_any
    if known is None:
        return
    yield guard.key_of(known.root), utf8_text(known.root)
    with suppress(GuardError, OSError):
        for other in other_work_trees(known):
            yield guard.key_of(other.root), utf8_text(other.root)


def redact_night(report: NightReport, guard: Invocation) -> NightReport:
    """Return the report without what the rules of rescue call secrets, and without the values of secret variables."""
    plain = json.loads(report.model_dump_json())
    redacted = redact_document(plain, known_secrets(guard.environ))
    return (
        parse_document(NightReport, json.dumps(redacted).encode()) if redacted != plain else report
    )
