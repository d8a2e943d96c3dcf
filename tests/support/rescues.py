"""What must hold of every snapshot and rescue: no byte of the work tree changed, and every byte can be had back."""

import os
import stat
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from guard.core.snapshots.snapshot import Occasion, Rescue, Snapshot
from guard.git.locate import find_repository
from guard.rescue import rescue
from guard.rescue.order import Orders
from guard.snapshots.project import Site
from guard.snapshots.take import take_and_prune
from tests.support import TIME_LIMIT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BY_HAND = Occasion("by_hand", NOW)
Contents = dict[bytes, tuple[str, bytes]]


def contents(root: Path) -> Contents:
    """Every file and link below a folder, git directories left aside."""
    found: Contents = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        folders[:] = [name for name in folders if name != b".git"]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            relative = os.path.relpath(path, os.fsencode(root))
            if stat.S_ISLNK(status.st_mode):
                found[relative] = ("link", os.readlink(path))
            elif stat.S_ISREG(status.st_mode) and relative != b".git":
                kind = "executable" if status.st_mode & 0o100 else "file"
                found[relative] = (kind, Path(os.fsdecode(path)).read_bytes())
    return found


def recovered(kept: Snapshot, folder: Path) -> Contents:
    """What the printed command brings back."""
    folder.mkdir()
    command = kept.recover.replace("-C DIR", f"-C {folder}")
    shell = ["bash", "-o", "pipefail", "-c", command]
    subprocess.run(shell, check=True, timeout=TIME_LIMIT, capture_output=True)
    return contents(folder)


def fingerprint(folder: Path) -> dict[str, str]:
    """A digest of every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def take_snapshot(
    root: Path, workspace: Path, time_limit: float = TIME_LIMIT, **options: Any
) -> Snapshot:
    """A snapshot of the work tree at this folder."""
    workspace.mkdir(mode=0o700, exist_ok=True)
    return take_and_prune(site_of(root, workspace, time_limit), **{"occasion": BY_HAND, **options})


def site_of(root: Path, workspace: Path, time_limit: float = TIME_LIMIT) -> Site:
    return Site(find_repository(root, lambda _: None), workspace, os.environ, time_limit)


def attempt_rescue(
    root: Path,
    workspace: Path,
    paths: Sequence[bytes | str],
    time_limit: float = TIME_LIMIT,
    **options: Any,
) -> Rescue:
    """A rescue of these paths, as after the second iteration of the run r1 that began on main."""
    workspace.mkdir(mode=0o700, exist_ok=True)
    named = [path if isinstance(path, bytes) else path.encode() for path in paths]
    options = {"baseline_branch": "refs/heads/main", **options}
    orders = Orders(run="r1", iteration=2, paths=named, **options)
    return rescue(site_of(root, workspace, time_limit), orders, NOW)
