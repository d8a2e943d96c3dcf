"""Taking a snapshot: the work tree, what only the index has, and the operation in progress, in one commit of the shadow.

`worktree/` is the work tree byte for byte, `index/<stage>/` what is staged and not committed, `gitdir/` the small files that
say which operation is in progress; `manifest.json` has what trees cannot say. The project is only read.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from guard.core.fields import is_id
from guard.core.rescuing import LONGEST_LINE, Occasion, Snapshot, capped_lines
from guard.errors import RepositoryProblem, WrongUsage
from guard.rescue.index import Index
from guard.rescue.project import Project
from guard.rescue.shadow import Shadow, opened
from guard.rescue.taking import Kept, Taking

REFS = "refs/guard/snapshot"
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Taken:
    """A snapshot that was read back, with what a rescue has to know of it."""

    snapshot: Snapshot
    kept: Mapping[bytes, Kept]
    trouble: Mapping[bytes, str]
    """Why a path is not in it, or not as it was."""
    absent: frozenset[bytes]
    """Wanted paths that are not in the work tree."""
    folders: frozenset[bytes]
    """Wanted paths that are folders there."""
    passed_over: Mapping[bytes, str]
    """Folders that are rebuilt anyway."""
    suspects: frozenset[bytes]
    """Wanted paths with something in them that looks like a secret."""


def take(
    project: Project, shadow: Shadow, occasion: Occasion, wanted: Sequence[bytes] = ()
) -> Taken:
    """Make a snapshot, and read it back; `wanted` are paths that are in it even where the walk leaves a folder out."""
    identity = f"{occasion.name[:_LONGEST_NAME]}-{os.urandom(4).hex()}"
    ref = f"{REFS}/{identity}"
    packs = shadow.packs()
    with shadow.importing(ref) as stream:
        taking = Taking(project, stream, Index(shadow, project.repository), wanted)
        taking.everything()
        skipped = taking.skipped()
        stream.put(b"manifest.json", b"100644", taking.manifest(identity, occasion, skipped))
    shadow.verify(ref, stream.written, packs)
    snapshot = Snapshot(
        id=identity,
        ref=ref,
        files=len(taking.kept),
        skipped=capped_lines(skipped),
        whole=taking.whole,
        recover=recovery(shadow.path, ref, len(taking.kept)),
    )
    return Taken(
        snapshot=snapshot,
        kept=taking.kept,
        trouble=taking.trouble,
        absent=frozenset(taking.absent),
        folders=frozenset(taking.folders),
        passed_over=taking.walk.not_needed,
        suspects=frozenset(taking.suspects),
    )


@contextmanager
def ready(project: Project, workspace: Path, occasion: Occasion) -> Iterator[Shadow]:
    """The shadow repository, once it is clear that a snapshot of this name can be taken."""
    name = occasion.name
    if not is_id(name[:_LONGEST_NAME]):
        raise WrongUsage(f"{name[:40]!r} cannot name a snapshot", "use letters, digits and hyphens")
    if not project.repository.root.is_dir():
        raise RepositoryProblem(
            f"the work tree {project.repository.root} is gone", "earlier snapshots are still there"
        )
    object_format = project.object_format()
    with opened(workspace, project.environ, project.deadline, object_format) as shadow:
        yield shadow


def recovery(shadow: Path, ref: str, files: int) -> str:
    """The command that brings a snapshot back into a folder.

    The attributes in the shadow repository see to it that `git archive` converts nothing.
    """
    tree = f"{ref}:worktree" if files else ref
    place = shlex.quote(f"--git-dir={shadow}")
    command = f"git {place} archive {tree} | tar -x -C DIR"
    if len(command) <= LONGEST_LINE and command.isprintable():
        return command
    return f'git --git-dir="$(guard where)/{shadow.name}" archive {tree} | tar -x -C DIR'
