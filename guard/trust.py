"""Record, show and revoke what the user trusts of the project's settings."""

import os
from collections.abc import Iterator, Mapping

from guard.context.config import ConfigSources
from guard.context.invocation import RUN_REPO, Invocation
from guard.context.lease import is_here
from guard.context.project_trust import CommittedFile, ProjectTrust, read_committed
from guard.core.base.text import escape, utf8_text
from guard.core.config.resolve import SettingSource, knobs, resolve, value_of
from guard.core.hooks.event_kinds import MARK
from guard.core.iteration.run import RUN
from guard.core.trust.report import FileState, FileTrust, TrustedKey, TrustReport, TrustState
from guard.errors import Refused, StoreUnavailable, WrongUsage
from guard.git.reader import RepositoryReader
from guard.git.refs import UNBORN, commit_of, read_head
from guard.system.process_identity import ancestors, is_alive

_HINT = "trust it in a terminal of your own, after you have looked at it"


def grant(guard: Invocation, revision: str) -> TrustReport:
    """Record that the user trusts the settings of a commit."""
    _refuse_agent(guard)
    trust, git = _trust(guard), _reader(guard)
    commit = _commit(git, revision)
    if commit is None:
        raise Refused(
            "there is no commit yet, so there is nothing to trust",
            "commit the project's settings first",
        )
    files = read_committed(git, commit)
    for file in files:
        if file.problem is not None:
            raise Refused(
                f"{commit[:12]}: {file.problem}; guard cannot trust it",
                "fix the file and commit it, then run `guard trust` again",
            )
    if not any(file.digest for file in files):
        raise Refused(
            f"commit {commit[:12]} has no settings of guard, neither in guard.toml nor in pyproject.toml",
            "commit the file first: an edit that is not committed is not trusted",
        )
    try:
        trust.grant(commit, files, guard.clock.now())
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write {trust.path}: {error.strerror}", "`guard doctor` checks the machine"
        ) from None
    return _report(guard, trust, commit, files)


def show(guard: Invocation, revision: str) -> TrustReport:
    trust, git = _trust(guard), _reader(guard)
    commit = _commit(git, revision)
    return _report(guard, trust, commit, read_committed(git, commit) if commit else ())


def revoke(guard: Invocation, revision: str) -> TrustReport:
    """Forget what the user trusts. An agent may do that, too: then only less counts."""
    trust, git = _trust(guard), _reader(guard)
    trust.revoke()
    commit = _commit(git, revision)
    files = read_committed(git, commit) if commit else ()
    return _report(guard, trust, commit, files).model_copy(update={"state": "revoked"})


def _refuse_agent(guard: Invocation) -> None:
    """Raise if an agent of a run asks: by the variables that it was given, or by the processes above this one."""
    if any(guard.environ.get(name) for name in (MARK, RUN_REPO)):
        raise Refused("an agent of a run cannot trust the project's settings", _HINT)
    run = guard.store.view(RUN, guard.worktree_key)
    opened = run.open_iteration if run is not None else None
    above = ancestors(os.getpid())
    for process in (opened.process, opened.supervisor) if opened is not None else ():
        if process is None or process.pid not in above or not is_here(process):
            continue
        if is_alive(process.pid, process.start):
            raise Refused("an agent's session cannot trust the project's settings", _HINT)


def _trust(guard: Invocation) -> ProjectTrust:
    if guard.config_file is not None:
        raise WrongUsage(
            "with --config guard reads no file of the project",
            "leave --config and GUARD_CONFIG out",
        )
    assert guard.repository  # Raises where there is none.
    assert guard.trust is not None
    return guard.trust


def _reader(guard: Invocation) -> RepositoryReader:
    return RepositoryReader(guard.repository, guard.environ)


def _commit(git: RepositoryReader, revision: str) -> str | None:
    if revision == "HEAD" and read_head(git) == UNBORN:
        return None
    return commit_of(git, revision)


def _report(
    guard: Invocation,
    trust: ProjectTrust,
    commit: str | None,
    files: tuple[CommittedFile, ...],
) -> TrustReport:
    record = trust.record
    edited = trust.edited_files(files) if record is not None else ()
    warnings = [trust.problem] if trust.problem else []
    warnings += [f"{file.name}: {file.problem}" for file in files if file.problem]
    warnings += _faults(files)
    state: TrustState = "untrusted" if record is None else "edited" if edited else "trusted"
    return TrustReport(
        state=state,
        commit=commit,
        trusted_commit=record.commit if record is not None else None,
        trusted_at=record.at if record is not None else None,
        files=tuple(
            FileTrust(
                file=file.name,
                state=_file_state(file, is_known=record is not None, is_edited=file.name in edited),
                digest=file.digest,
            )
            for file in files
        ),
        keys=tuple(_keys(files)),
        uncommitted=tuple(_uncommitted(guard, files)),
        warnings=tuple(escape(utf8_text(warning)) for warning in warnings),
        record=utf8_text(trust.path),
    )


def _file_state(file: CommittedFile, *, is_known: bool, is_edited: bool) -> FileState:
    if is_edited:
        return "edited"
    if file.digest is None and file.problem is None:
        return "absent"
    return "trusted" if is_known else "untrusted"


def _as_approved(files: tuple[CommittedFile, ...]) -> list[SettingSource]:
    return [
        SettingSource(file.name, file.values, trusted=False, approved=True)
        for file in files
        if file.values
    ]


def _faults(files: tuple[CommittedFile, ...]) -> tuple[str, ...]:
    return resolve(_as_approved(files)).warnings


def _keys(files: tuple[CommittedFile, ...]) -> Iterator[TrustedKey]:
    resolved = resolve(_as_approved(files))
    for knob in knobs():
        origin = resolved.origins.get(knob.key)
        if origin is not None:
            yield TrustedKey(key=knob.key, value=value_of(resolved, knob), file=origin)


def _uncommitted(guard: Invocation, files: tuple[CommittedFile, ...]) -> Iterator[str]:
    given: dict[str, Mapping[str, object]] = {file.name: file.values for file in files}
    for name, values in ConfigSources(guard.environ).project_values(guard.repository.root).items():
        if values != given.get(name, {}):
            yield name
