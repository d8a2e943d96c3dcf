"""The `.git` that a checkout shows to the programs that run in it: a new one each time, with no setting of the project's."""

import os
from contextlib import suppress
from pathlib import Path

from guard.errors import RepositoryProblem
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader
from guard.prove.own_git import git_config
from guard.prove.trees import Trees
from guard.system.foreign_files import read_regular

_WHO = "guard <guard@localhost>"
_MOST_BYTES = 64 * 1024**2
_TAGS = "%(objectname) %(refname)"


def present_git(
    trees: Trees, git: RepositoryReader, checkout: Path, index: bytes, tree: str, head_commit: str
) -> None:
    """Write a git directory into a checkout: HEAD detached, the index as the files are, and the project's tags.

    If the tree is not that of the commit, HEAD is a commit on top of it, so that nothing looks changed.
    """
    folder = checkout / ".git"
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        os.makedirs(folder / name)
    head = head_commit if tree == trees.raw_tree(head_commit) else _commit(trees, tree, head_commit)
    own = trees.git
    lenders = [*own.object_folders, own.own_objects]
    contents = {
        "HEAD": head.encode() + b"\n",
        "config": git_config(own.object_format),
        "index": index,
        "info/attributes": own.attributes,
        "objects/info/alternates": os.fsencode("".join(f"{line}\n" for line in lenders)),
        "packed-refs": _tags(git),
        "shallow": _shallow(git.repository),
    }
    for name, data in contents.items():
        if data:
            (folder / name).write_bytes(data)


def _commit(trees: Trees, tree: str, parent: str) -> str:
    when = trees.time_of(parent)
    lines = (
        f"tree {tree}",
        f"parent {parent}",
        f"author {_WHO} {when}",
        f"committer {_WHO} {when}",
    )
    return trees.git.write("commit", "\n".join((*lines, "", "Checked by guard", "")).encode())


def _tags(git: RepositoryReader) -> bytes:
    # A project on which git cannot list them is proven without them.
    with suppress(RepositoryProblem):
        return git.ask("for-each-ref", f"--format={_TAGS}", "refs/tags")
    return b""


def _shallow(repository: Repository) -> bytes:
    with suppress(OSError):
        return read_regular(repository.common_dir / "shallow", _MOST_BYTES)
    return b""
