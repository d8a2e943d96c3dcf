"""Pins: refs of guard's own that keep commits from git's garbage collection, until the next baseline or for good."""

from collections.abc import Iterable
from datetime import datetime

from guard.git.reader import RepositoryReader
from guard.git.refs import OWN

_COMMIT = """\
tree {tree}
{parents}author guard <guard@localhost> {seconds} +0000
committer guard <guard@localhost> {seconds} +0000

{subject}

Made by guard, which only keeps these commits from being deleted. It is on no branch.
"""


def baseline_ref(worktree: str) -> str:
    """The ref that pins the baseline of a work tree."""
    return f"{OWN}baseline/{worktree}"


def lost_ref(baseline: str) -> str:
    """The ref that pins what was lost since a baseline."""
    return f"{OWN}lost/{baseline}"


def pin(git: RepositoryReader, ref: str, tips: Iterable[str], now: datetime, subject: str) -> str:
    """Make the ref lead to all these commits, by a commit that has them as parents; its id.

    Git walks history by date, so the date of the pin, not before that of its parents, keeps walks from it short.
    """
    tree = git.ask("hash-object", "-w", "-t", "tree", "--stdin", stdin=b"").decode().strip()
    text = _COMMIT.format(
        tree=tree,
        parents="".join(f"parent {oid}\n" for oid in dict.fromkeys(tips)),
        seconds=int(now.timestamp()),
        subject=subject,
    )
    made = git.ask("hash-object", "-w", "-t", "commit", "--stdin", stdin=text.encode())
    oid = made.decode().strip()
    git.ask("update-ref", "--no-deref", "-m", "guard: pin", ref, oid)
    return oid
