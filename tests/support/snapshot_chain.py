"""What must hold of a snapshot that starts from the one before: it is the same as one that starts from nothing."""

import os
import subprocess
from pathlib import Path
from typing import Any

from guard.core.snapshots.paths import work_tree_path
from guard.core.snapshots.snapshot import Manifest, Snapshot
from tests.support import TIME_LIMIT
from tests.support.rescues import Contents, contents, take_snapshot

_KINDS = {b"100644": "file", b"100755": "executable", b"120000": "link"}


def asked(workspace: Path, *words: str, stdin: bytes = b"") -> bytes:
    """What git says of the shadow repository."""
    argv = ["git", f"--git-dir={workspace}/shadow.git", *words]
    done = subprocess.run(argv, input=stdin, capture_output=True, check=True, timeout=TIME_LIMIT)
    return done.stdout


def saved(workspace: Path, kept: Snapshot) -> Contents:
    """Every file and link that a snapshot has, by its path in the work tree."""
    if not kept.files:
        return {}
    lines = asked(workspace, "ls-tree", "-r", "-z", f"{kept.ref}:worktree").split(b"\0")[:-1]
    entries = [
        (*about.split(), path) for about, _, path in (line.partition(b"\t") for line in lines)
    ]
    blobs = _blobs(workspace, b"\n".join(oid for _mode, _kind, oid, _path in entries))
    return {
        work_tree_path(path): (_KINDS[mode], data)
        for (mode, _kind, _oid, path), data in zip(entries, blobs, strict=True)
    }


def _blobs(workspace: Path, oids: bytes) -> list[bytes]:
    answer, at, found = asked(workspace, "cat-file", "--batch", stdin=oids), 0, []
    while at < len(answer):
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split()[2])
        found.append(answer[end + 1 : end + 1 + size])
        at = end + size + 2
    return found


def manifest(workspace: Path, kept: Snapshot) -> Manifest:
    """What the snapshot says of itself."""
    return Manifest.model_validate_json(
        asked(workspace, "cat-file", "blob", f"{kept.ref}:manifest.json")
    )


def trees(workspace: Path, kept: Snapshot) -> set[bytes]:
    """All that is in the snapshot but the manifest."""
    lines = asked(workspace, "ls-tree", "-z", kept.ref).split(b"\0")[:-1]
    return {line for line in lines if not line.endswith(b"manifest.json")}


def take_next(root: Path, workspace: Path, **options: Any) -> Snapshot:
    """A snapshot that starts from the last one, compared with the work tree and with one that starts from nothing."""
    kept = take_snapshot(root, workspace, **options)
    assert saved(workspace, kept) == contents(root)
    assert_like_a_full_one(root, workspace, kept, **options)
    return kept


def assert_like_a_full_one(root: Path, workspace: Path, kept: Snapshot, **options: Any) -> None:
    """The same trees, the same counts, the same words on what is missing."""
    elsewhere = workspace.with_name(f"{workspace.name}-{os.urandom(4).hex()}")
    full = take_snapshot(root, elsewhere, **options)
    assert trees(workspace, kept) == trees(elsewhere, full)
    mine, other = manifest(workspace, kept), manifest(elsewhere, full)
    assert mine.model_copy(update={"id": other.id}) == other
    assert (kept.files, kept.skipped, kept.whole) == (full.files, full.skipped, full.whole)


def read_so_far() -> int:
    """Bytes that this process and the ended ones that it started have read, from files as from pipes."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])
