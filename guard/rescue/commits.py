"""Make commits by plumbing, in an index of guard's own: invisible until one `update-ref`, and proven before it.

Nothing that the project can configure has a part in it: no hook unless the user wants it, no filter, no signature but the
user's own. The project's index gets the committed paths afterwards, and no others.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from guard.core.base.paths import path_line
from guard.core.rescue.commit_message import commit_message
from guard.core.rescue.groups import Group
from guard.core.snapshots.paths import LINK
from guard.errors import RepositoryProblem
from guard.git.ignore_rules import ask_by_parts
from guard.git.obstacles import GitObstacle
from guard.git.run import read_users_config
from guard.rescue.changes import PathChange, update_index, write_tree
from guard.rescue.move_branch import ref_update
from guard.rescue.select import CommitSelection, join_paths
from guard.snapshots.project import Project
from guard.snapshots.shadow import Shadow
from guard.snapshots.take import Taken
from guard.system.processes import run
from guard.system.programs import find_program

_PROGRAMS = {
    "openpgp": ("gpg.openpgp.program", "gpg.program"),
    "ssh": ("gpg.ssh.program",),
    "x509": ("gpg.x509.program",),
}
_USUAL = {"openpgp": "gpg", "ssh": "ssh-keygen", "x509": "gpgsm"}
_KEY_SECONDS = 10.0


class Signing(NamedTuple):
    """The options that git needs to sign, and the key; without a key nothing can be signed."""

    settings: tuple[str, ...]
    key: str


def find_signing(environ: Mapping[str, str], committer: str) -> Signing | None:
    """Return how the user signs commits, or None if the user does not.

    The user's own configuration decides, never the repository's: a program that signs is a program that runs, and the
    repository's configuration is the agent's to edit. So the key is always named: git would ask the repository for it.
    """
    with suppress(RepositoryProblem, OSError, ValueError):
        if read_users_config("commit.gpgSign", environ, "bool") != "true":
            return None
        form = read_users_config("gpg.format", environ) or "openpgp"
        if form not in _PROGRAMS:
            return None
        key = read_users_config("user.signingKey", environ) or _usual_key(form, environ, committer)
        programs = (read_users_config(name, environ) for name in _PROGRAMS[form])
        program = os.path.expanduser(next(filter(None, programs), _USUAL[form]))
        # Git would look it up by the folders of the search path alone.
        program = find_program(program, environ) or program
        options = {"gpg.format": form, **dict.fromkeys(_PROGRAMS[form], program)}
        settings = (word for name, value in options.items() for word in ("-c", f"{name}={value}"))
        return Signing(tuple(settings), key or "")
    return None


def _usual_key(form: str, environ: Mapping[str, str], committer: str) -> str | None:
    """The key that git takes where none is set: the committer's, or for ssh what the user's own command prints."""
    if form != "ssh":
        return committer
    command = read_users_config("gpg.ssh.defaultKeyCommand", environ)
    if command is None:
        return None
    words = shlex.split(command)
    done = run(words, environ=environ, time_limit=_KEY_SECONDS, cwd=os.sep, leaves_nothing=True)
    line = done.stdout.decode(errors="replace").partition("\n")[0].strip()
    return line if done.code == 0 and line.startswith(("key::", "ssh-", "ecdsa-", "sk-")) else None


_MOST_BRANCHES = 50
_SIGNING_SHARE = 0.4


def rescue_branch(run: str, iteration: int) -> str:
    return f"guard/rescue/{run}-{iteration}"


class ProvenTree(NamedTuple):
    """A tree that has the planned changes and no others."""

    head: str | None
    tree: str
    changed: Sequence[PathChange]


def write_selection(
    project: Project, plan: CommitSelection, refused: dict[bytes, str] | None = None
) -> str:
    """Write the planned changes into the index, and a tree of them.

    A path that git refuses to add is left as it was, and goes into `refused` with git's message; if it refuses all of them,
    the fault is not theirs, and this raises.
    """
    refused = {} if refused is None else refused
    if plan.delete:
        project.call(
            "update-index", "--force-remove", "-z", "--stdin", stdin=join_paths(plan.delete)
        )
    words = ("update-index", "--add", "--replace", "-z", "--stdin")

    def add(part: Sequence[bytes]) -> bytes:
        return project.call(*words, stdin=join_paths(part))

    added = list(ask_by_parts(add, plan.add, refused))
    if refused and not added:
        raise RepositoryProblem(next(iter(refused.values())), "run `git status`, then `git fsck`")
    return write_tree(project)


def prove(
    project: Project,
    shadow: Shadow,
    taken: Taken,
    plan: CommitSelection,
    changed: Sequence[PathChange],
) -> None:
    """Refuse a tree that changes anything but the planned paths, each to git's own conversion of the snapshot's bytes."""
    add, delete = frozenset(plan.add), frozenset(plan.delete)
    for change in changed:
        deleted = change.letter == "D"
        if change.path not in (delete if deleted else add):
            raise _unproven_error(change, "the rescue did not choose it")
        if not deleted and not is_as_kept(project, shadow, taken, change):
            raise _unproven_error(change, "it changed since the snapshot")


def is_as_kept(project: Project, shadow: Shadow, taken: Taken, change: PathChange) -> bool:
    """Tell whether a blob is git's own conversion of what the snapshot has under its path."""
    if change.path not in taken.kept:
        return False
    kept = taken.kept[change.path]
    if (kept.mode == LINK) != (change.mode == LINK):
        return False
    if kept.oid == change.oid:
        return True
    data = shadow.call("cat-file", "blob", kept.oid)
    path = os.fsdecode(change.path)
    words = (
        ("hash-object", "--no-filters") if kept.mode == LINK else ("hash-object", f"--path={path}")
    )
    return project.line(*words, "--stdin", stdin=data) == change.oid


def _unproven_error(change: PathChange, why: str) -> RepositoryProblem:
    return RepositoryProblem(
        f"guard does not commit {path_line(change.path)}: {why}",
        "try again when no program writes it",
    )


class Committer:
    """Makes commits of proven trees, and puts them on a branch."""

    def __init__(self, project: Project, notes: Path, run: str, iteration: int) -> None:
        self._project, self._run, self._iteration = project, run, iteration
        self._notes = notes
        self._signing = find_signing(project.environ, project.committer)
        self.unsigned = "no key is set" if self._signing and not self._signing.key else ""
        """Why commits are not signed, though the user signs."""

    def chain(
        self,
        groups: Sequence[Group],
        changed: Sequence[PathChange],
        head: str | None,
        messages: Sequence[bytes] = (),
    ) -> list[str]:
        """Make one commit for each group, the first upon `head`; no ref names them yet."""
        by_path = {change.path: change for change in changed}
        messages = messages or [self.message(group) for group in groups]
        self._project.call("read-tree", head or "--empty")
        made: list[str] = []
        for group, message in zip(groups, messages, strict=True):
            named = [
                path for change in group.changes for path in (change.old_path, change.path) if path
            ]
            update_index(self._project, [by_path[path] for path in named])
            parent = made[-1] if made else head
            made.append(self.commit(write_tree(self._project), parent, message))
        return made

    def message(self, group: Group) -> bytes:
        return commit_message(group.subject, group.body, self._run, self._iteration)

    def commit(self, tree: str, parent: str | Sequence[str] | None, message: bytes) -> str:
        """Make a commit, signed if the user signs and no program has to ask for that; return its id."""
        parents = [parent] if isinstance(parent, str) else parent or ()
        words = ("commit-tree", *(word for each in parents for word in ("-p", each)), "-F", "-")
        if self._signing is not None and not self.unsigned:
            try:
                return self._sign(self._signing, words, tree, message)
            except RepositoryProblem as error:
                self.unsigned = error.message
        return self._project.line(*words, "--no-gpg-sign", tree, stdin=message)

    def _sign(self, how: Signing, words: Sequence[str], tree: str, message: bytes) -> str:
        # A program that waits for a person, who is not there, must leave time for a commit without it.
        project = replace(self._project, deadline=self._project.deadline.part(_SIGNING_SHARE))
        sign = f"--gpg-sign={how.key}"
        return project.line(*how.settings, *words, sign, tree, stdin=message)

    def branch_update(
        self, branch: str, commit: str, head: str | None
    ) -> AbstractContextManager[Sequence[str]]:
        """The command that moves the branch; the locks that it makes are noted meanwhile."""
        old = head or "0" * len(commit)
        reason = f"guard: rescue {self._run}/{self._iteration}"
        return ref_update(self._project, self._notes, branch, commit, old, reason)

    def new_branch(self, commit: str) -> str:
        """Put a rescue branch at the commit; a branch that has the name already is never moved."""
        name = rescue_branch(self._run, self._iteration)
        for number in range(2, _MOST_BRANCHES):
            try:
                with self.branch_update(f"refs/heads/{name}", commit, None) as words:
                    self._project.call(*words)
            except GitObstacle:
                raise
            except RepositoryProblem:
                taken = ("rev-parse", "--verify", "--quiet", f"refs/heads/{name}")
                if self._project.line_if_any(*taken) is None:
                    raise
                name = f"{rescue_branch(self._run, self._iteration)}-{number}"
            else:
                return name
        raise RepositoryProblem(
            f"every rescue branch up to {name} exists already",
            "delete old ones with `git branch -D`",
        )
