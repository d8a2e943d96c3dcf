"""Snapshots to read: taken for real at moments of the test's choosing, and damaged on purpose."""

import os
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from guard.core.snapshots.snapshot import Occasion, SnapshotKind
from tests.support.rescues import NOW, take_snapshot


def keep(root: Path, workspace: Path, days_ago: float = 0, kind: SnapshotKind = "by_hand") -> str:
    """Take a snapshot that says it was taken then; its id."""
    occasion = Occasion(kind, NOW - timedelta(days=days_ago))
    return take_snapshot(root, workspace, occasion=occasion).id


def shadow_git(workspace: Path, *words: str, stdin: bytes = b"") -> str:
    """Ask or tell the shadow repository; its failure fails the test."""
    done = subprocess.run(
        ["git", f"--git-dir={workspace / 'shadow.git'}", *words],
        input=stdin,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return done.stdout.decode(errors="surrogateescape").strip()


def refs(workspace: Path) -> set[str]:
    """Every ref in the shadow repository."""
    return set(shadow_git(workspace, "for-each-ref", "--format=%(refname)").split())


def hold_unpromoted(workspace: Path, identity: str) -> None:
    """Mark a snapshot as one whose work nobody has taken over."""
    target = f"refs/guard/snapshot/{identity}"
    shadow_git(workspace, "update-ref", f"refs/guard/unpromoted/{identity}", target)


def with_tree(workspace: Path, identity: str, *entries: bytes) -> str:
    """Another snapshot with these entries of `git mktree`, unsafe names and all; its id."""
    tree = shadow_git(workspace, "mktree", "-z", "--missing", stdin=b"\0".join(entries) + b"\0")
    return with_raw_tree(workspace, identity, tree)


def with_raw_tree(workspace: Path, identity: str, tree: str) -> str:
    """A snapshot whose commit has this tree."""
    words = ("-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-m", "x", tree)
    made = shadow_git(workspace, *words)
    shadow_git(workspace, "update-ref", f"refs/guard/snapshot/{identity}", made)
    return identity


def lose(workspace: Path, name: str) -> None:
    """Take one object away, all others kept."""
    _unpack(workspace)
    _loose(workspace, name).unlink()


def damage(workspace: Path, name: str, data: bytes) -> None:
    """Put other bytes where an object should be, of the same kind and well formed."""
    _unpack(workspace)
    path = _loose(workspace, name)
    path.chmod(0o600)
    path.write_bytes(zlib.compress(b"blob %d\0%s" % (len(data), data)))


def _loose(workspace: Path, name: str) -> Path:
    oid = shadow_git(workspace, "rev-parse", name)
    return workspace / "shadow.git/objects" / oid[:2] / oid[2:]


def _unpack(workspace: Path) -> None:
    for pack in sorted((workspace / "shadow.git/objects/pack").glob("*.pack")):
        data = pack.read_bytes()
        for part in pack.parent.glob(f"{pack.stem}.*"):
            part.unlink()
        shadow_git(workspace, "unpack-objects", "-q", stdin=data)


@contextmanager
def mounted(folder: Path, size: str = "4m") -> Iterator[Path]:
    """A small file system of its own; the test is skipped where there can be none."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def make_read_only(disk: Path) -> None:
    """From here on nothing on it can be written."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
