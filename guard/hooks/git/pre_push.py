"""`pre-push`: refuse a push while work is uncommitted, held back, or only on a rescue branch."""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from guard import team as teams
from guard.context.invocation import Invocation
from guard.core.base.text import escape
from guard.core.breaker.state import BREAKER
from guard.core.check.last_check import LAST_CHECK
from guard.core.check.warnings import list_warnings
from guard.core.hooks.git.push_gate import PushState, findings
from guard.core.work.history import Commit
from guard.errors import GuardError
from guard.git.commits import CHILDREN_FIRST, list_commits
from guard.git.dirty import read_dirty
from guard.git.reader import RepositoryReader
from guard.git.refs import missing_commits
from guard.hooks import faults
from guard.hooks.ancestors import ancestors
from guard.hooks.git.note import locate
from guard.hooks.git.secrets import is_iteration_running
from guard.iteration.current import team_scope
from guard.rescue.scan_commits import CommitScan, scan_commits
from guard.system.startup import prepare

_OLDEST_PATCH_SECONDS = 86400.0
_BYPASS = "skip it once: git push --no-verify, or GUARD_SKIP=pre-push"
_SCAN_SECONDS = 5.0
_MOST_PUSHED = 2000
_RESCUES = "refs/heads/guard/rescue/"
_RESCUED = ("rescued", "rescue_refused")


def check_push(lines: bytes, environ: Mapping[str, str]) -> int:
    """Return 1, which refuses the push, if there is a finding against it; `lines` are what git writes to its hook."""
    _, work_tree = locate(environ)
    if _is_deletion(lines) or work_tree is None:
        return 0
    prepare()
    guard = Invocation(repo=Path(work_tree.root), environ=environ)
    found = list(findings(read_push_state(guard, environ)))
    for finding in found:
        line = escape(f"{finding.found} (to do: {finding.hint})")
        sys.stderr.write(f"guard: {line}\n")
    is_refused = _has_refused_secrets(guard, lines, environ) or bool(found)
    if is_refused:
        sys.stderr.write(f"guard: refused; {_BYPASS}\n")
    return 1 if is_refused else 0


def _has_refused_secrets(guard: Invocation, lines: bytes, environ: Mapping[str, str]) -> bool:
    try:
        return _refuse_secrets(guard, lines)
    except GuardError as error:
        # The other findings count all the same.
        faults.tell(environ, f"guard hook git pre-push: secrets were not searched for: {error}")
        return False


def _refuse_secrets(guard: Invocation, lines: bytes) -> bool:
    """Warn of secrets in the commits that are pushed; tell whether the push is to be refused for them."""
    git = RepositoryReader(guard.repository, guard.environ)
    commits = _list_pushed(git, lines)
    allowed = guard.users_config.settings.rescue.allow_secrets
    found = scan_commits(git, commits, None, allowed, _SCAN_SECONDS) if commits else CommitScan()
    for sentence in list_warnings(found.secrets, found.not_scanned, ()):
        sys.stderr.write(f"guard: {sentence}\n")
    if not found.secrets:
        return False
    return is_iteration_running(guard) or guard.config.settings.hooks.refuse_secrets


def _list_pushed(git: RepositoryReader, text: bytes) -> list[Commit]:
    """Return the commits that no remote has yet, the newest first."""
    ids = [line.split(b" ")[1::2] for line in text.splitlines() if line.count(b" ") == 3]
    local = {pair[0].decode() for pair in ids if pair[0].strip(b"0")}
    theirs = [pair[1].decode() for pair in ids if pair[1].strip(b"0")]
    known = set(theirs) - set(missing_commits(git, theirs))
    refs = git.ask("for-each-ref", "--format=%(objectname)", "refs/remotes/").decode().split()
    listed = list_commits(git, local, {*known, *refs}, _MOST_PUSHED, CHILDREN_FIRST)
    return list(listed.commits.values())


def read_push_state(guard: Invocation, environ: Mapping[str, str]) -> PushState:
    # It only reads; `environ` is the hook's own environment.
    hidden = _hiding_reason(environ)
    found = PushState(
        uncommitted=() if hidden else _uncommitted_paths(guard),
        unverifiable=hidden,
        rescues=_rescues(RepositoryReader(guard.repository, guard.environ)),
    )
    try:
        return _add_state(guard, found)
    except GuardError as error:
        # The findings from git count all the same.
        faults.tell(environ, f"guard hook git pre-push: the state could not be read: {error}")
        return found


def has_hidden_changes(environ: Mapping[str, str], now: float) -> bool:
    """Tell whether pre-commit or prek, calling this hook, has put unstaged changes aside.

    Both keep the changes in a patch file that is named after their own process, which is one above the hook.
    """
    if not environ.get("PRE_COMMIT"):
        return False
    pids = {str(pid) for pid, _, _ in ancestors()}
    return any(
        name.removesuffix(".patch").rpartition("-")[2] in pids
        and now - since < _OLDEST_PATCH_SECONDS
        for name, since in _patches(environ)
    )


def is_committing(environ: Mapping[str, str]) -> bool:
    # During a commit the staged changes are in it, and the others may be put aside.
    stage = environ.get("PREK_HOOK_STAGE")
    return stage == "pre-commit" or (stage is None and "GIT_INDEX_FILE" in environ)


def _add_state(guard: Invocation, found: PushState) -> PushState:
    key = guard.worktree_key
    breaker, last = guard.store.view(BREAKER, key), guard.store.view(LAST_CHECK, key)
    scope, team = teams.find_holding_team(guard.store, team_scope(guard), guard.clock.moment())
    count = team.active_teammate_count if team is not None else 0
    refused = last is not None and last.reason in _RESCUED and bool(last.left)
    is_open = breaker is not None and breaker.state == "open"
    return replace(
        found,
        breaker_open=(breaker.reason or "opened by hand") if breaker and is_open else None,
        refused_rescue=last.detail if last is not None and refused else None,
        held_by=(team.active_team_name or scope.session or "the session", count)
        if team is not None and count
        else None,
    )


def _is_deletion(text: bytes) -> bool:
    # Each line is `local-ref local-oid remote-ref remote-oid`.
    lines = [line.split(b" ") for line in text.splitlines() if line]
    return bool(lines) and all(len(line) > 1 and not line[1].strip(b"0") for line in lines)


def _hiding_reason(environ: Mapping[str, str]) -> str | None:
    if is_committing(environ):
        return "while a commit is being made, unstaged changes may be hidden"
    if has_hidden_changes(environ, time.time()):
        return "unstaged changes were put aside by the program that calls the hooks"
    return None


def _patches(environ: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", ""), ".cache")
    pre_commit = environ.get("PRE_COMMIT_HOME") or os.path.join(cache, "pre-commit")
    prek = environ.get("PREK_HOME") or os.path.join(cache, "prek")
    for folder in (pre_commit, os.path.join(prek, "patches")):
        try:
            with os.scandir(folder) as entries:
                yield from (
                    (entry.name, entry.stat().st_mtime)
                    for entry in entries
                    if "patch" in entry.name
                )
        except OSError:
            continue


def _uncommitted_paths(guard: Invocation) -> tuple[str, ...]:
    # As a check counts it: also files that git is told to ignore changes of, and those in submodules.
    found = read_dirty(RepositoryReader(guard.repository, guard.environ))
    return tuple(map(os.fsdecode, found.paths(found.files)))


def _rescues(git: RepositoryReader) -> tuple[str, ...]:
    refs = git.ask("for-each-ref", "--format=%(refname)", _RESCUES).decode(errors="replace").split()
    return tuple(
        ref.removeprefix("refs/heads/") for ref in refs if ref.isprintable() and _is_alone(git, ref)
    )


def _is_alone(git: RepositoryReader, ref: str) -> bool:
    others = (f"--exclude={_RESCUES.removeprefix('refs/heads/')}*", "--branches", "--remotes")
    return git.line("rev-list", "--count", "--max-count=1", ref, "--not", *others) == "1"
