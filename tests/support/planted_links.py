"""Links and special files planted below `.git`, and what lies outside the repository for them to lead to."""

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support import git, write

Imprint = dict[str, tuple[int, int, int, bytes]]

FOLDERS = (
    *("logs", "logs/refs", "logs/refs/heads", "logs/refs/guard", "logs/refs/guard/baseline"),
    *("refs", "refs/heads", "refs/guard", "refs/guard/baseline"),
    *("objects", "objects/pack", "objects/info", "objects/??"),
)
FILES = (
    *("logs/HEAD", "logs/refs/heads/main", "logs/refs/guard/baseline/w"),
    *("HEAD", "index", "packed-refs", "refs/heads/main", "refs/guard/baseline/w"),
)
PLACES = (*FOLDERS, *FILES)
"""Where git writes when guard pins a baseline and commits what was left; `??` are all folders of objects."""
OTHER_FOLDERS = (
    *("info", "hooks", "modules", "worktrees", "branches", "rr-cache", "lost-found", "reftable"),
    *("rebase-merge", "rebase-apply", "sequencer", "objects/info/commit-graphs"),
    *("refs/tags", "refs/remotes", "refs/worktree", "refs/guard/keep", "refs/guard/rescue"),
    *("logs/refs/tags", "logs/refs/remotes", "logs/refs/guard/keep", "logs/refs/guard/rescue"),
)
OTHER_FILES = (
    *("HEAD.lock", "index.lock", "config.lock", "packed-refs.lock", "shallow.lock"),
    *("refs/heads/main.lock", "refs/guard/baseline/w.lock", "config", "config.worktree"),
    *("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MSG", "CHERRY_PICK_HEAD", "AUTO_MERGE"),
    *("COMMIT_EDITMSG", "BISECT_LOG", "commondir", "gitdir", "shallow", "description"),
    *("info/exclude", "info/attributes", "info/grafts", "info/refs", "info/sparse-checkout"),
    *("hooks/pre-commit", "hooks/reference-transaction", "gc.pid", "gc.log"),
    *("refs/stash", "refs/tags/x", "logs/refs/stash", "logs/refs/tags/x"),
    *("objects/info/alternates", "objects/info/commit-graph", "objects/info/packs"),
    *("objects/pack/multi-pack-index", "objects/pack/pack-x.idx", "objects/pack/pack-x.pack"),
)
OTHER_PLACES = (*OTHER_FOLDERS, *OTHER_FILES)
"""Where git writes for other commands, and what it reads for these."""
LINKED_PLACES = (
    *("worktrees", "worktrees/project", "worktrees/project/logs", "worktrees/project/refs"),
    *("worktrees/project/HEAD", "worktrees/project/HEAD.lock", "worktrees/project/index"),
    *("worktrees/project/index.lock", "worktrees/project/logs/HEAD", "worktrees/project/ORIG_HEAD"),
    *("worktrees/project/commondir", "worktrees/project/gitdir", "worktrees/project/locked"),
    *("worktrees/project/config.worktree", "worktrees/project/COMMIT_EDITMSG"),
)
"""Where git writes in the git directory of a linked work tree named `project`, too."""


def outside(root: Path) -> Path:
    """A folder beside the work tree that is none of git's business."""
    folder = root.parent / "outside"
    write(folder / "bashrc", "# the user's own\n")
    write(folder / "folder/inside.txt", "inside\n")
    return folder


def imprint(folder: Path) -> Imprint:
    """All that a write could change, of a folder and everything in it; the bytes of files."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return {os.fspath(path): _look(path) for path in paths}


def _look(path: Path) -> tuple[int, int, int, bytes]:
    status = os.lstat(path)
    data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
    return status.st_mode, status.st_size, status.st_mtime_ns, data


def link_to_file(path: Path, beside: Path) -> None:
    path.symlink_to(beside / "bashrc")


def link_to_folder(path: Path, beside: Path) -> None:
    path.symlink_to(beside / "folder")


def dangling_link(path: Path, beside: Path) -> None:
    path.symlink_to(beside / "nothing")


def pipe(path: Path, beside: Path) -> None:
    os.mkfifo(path)


def socket_file(path: Path, beside: Path) -> None:
    # A socket's name may have about a hundred letters, so it is made elsewhere and moved.
    with socket.socket(socket.AF_UNIX) as made, tempfile.TemporaryDirectory() as folder:
        made.bind(f"{folder}/s")
        shutil.move(f"{folder}/s", path)


def link_to_device(path: Path, beside: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_pipe(path: Path, beside: Path) -> None:
    if not (beside / "pipe").exists():
        os.mkfifo(beside / "pipe")
    path.symlink_to(beside / "pipe")


def second_name(path: Path, beside: Path) -> None:
    path.hardlink_to(beside / "bashrc")


def other_kind(path: Path, beside: Path) -> None:
    """A file where git has a folder, and a folder with something in it where git has a file."""
    if beside.with_name("was_folder").exists():
        write(path, "a file\n")
    else:
        write(path / "inside.txt", "inside\n")


LINK_TO_OWN = "link to what was there"
KINDS: dict[str, Callable[[Path, Path], None]] = {
    "link to a file": link_to_file,
    "link to a folder": link_to_folder,
    LINK_TO_OWN: link_to_file,
    "dangling link": dangling_link,
    "pipe": pipe,
    "link to a pipe": link_to_pipe,
    "link to a device": link_to_device,
    "socket": socket_file,
    "second name": second_name,
    "other kind": other_kind,
}


def plant(git_dir: Path, place: str, kind: str, beside: Path) -> None:
    """Put something in the place of what git has there; a folder's link leads to what git had there, so that all works."""
    if place == "objects/??":
        for number in range(256):
            plant(git_dir, f"objects/{number:02x}", kind, beside)
        return
    path = git_dir / place
    path.parent.mkdir(parents=True, exist_ok=True)
    is_folder = path.is_dir() or place in (*FOLDERS, *OTHER_FOLDERS)
    if is_folder:
        (beside.parent / "was_folder").mkdir(exist_ok=True)
    moves = path.is_dir() if kind == "link to a folder" else kind == LINK_TO_OWN and path.is_file()
    if moves:
        moved = beside / place.replace("/", "-")
        path.rename(moved)
        path.symlink_to(moved)
        return
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    KINDS[kind](path, beside)


def is_planted(place: str, kind: str) -> bool:
    """Whether this makes sense: a hard link is one of a file."""
    return kind != "second name" or place in (*FILES, *OTHER_FILES)


def begin(root: Path) -> None:
    """A commit that has a few files, with packed refs and a branch that is loose all the same."""
    for name in ("kept.txt", "edited.txt"):
        write(root / name, f"{name}\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Start")
    git(root, "pack-refs", "--all", "--no-prune")
