"""The index: what is staged, how it is written down, what it hides, and locks."""

import os
from pathlib import Path

from tests.rescue.states_start import (
    ANYTHING,
    Left,
    State,
    after,
    before,
    configured,
    dirty,
    stopped,
)
from tests.support import commit, git, write

OLD = 1_600_000_000


def staged_differs(root: Path) -> Left:
    write(root / "edited.txt", "staged version\n")
    git(root, "add", "edited.txt")
    write(root / "edited.txt", "version on disk\n")
    return ["edited.txt"]


def staged_and_deleted(root: Path) -> Left:
    write(root / "staged.txt", "staged, then deleted\n")
    git(root, "add", "staged.txt")
    (root / "staged.txt").unlink()
    return [*dirty(root), "staged.txt"]


def staged_and_taken_back(root: Path) -> Left:
    """On disk all is as it was committed; the work is in the index alone."""
    write(root / "edited.txt", "staged version\n")
    git(root, "add", "edited.txt")
    git(root, "restore", "--source=HEAD", "--worktree", "edited.txt")
    write(root / "new.txt", "new\n")
    return ["edited.txt", "new.txt"]


def staged_deletion(root: Path) -> Left:
    git(root, "rm", "-q", "--cached", "edited.txt")
    return dirty(root)


def staged_link(root: Path) -> Left:
    (root / "link").symlink_to("staged target")
    git(root, "add", "link")
    (root / "link").unlink()
    write(root / "link", "a file by now\n")
    return ["link"]


def staged_as_program(root: Path) -> Left:
    git(root, "update-index", "--chmod=+x", "edited.txt")
    return dirty(root)


def staged_rename(root: Path) -> Left:
    git(root, "mv", "edited.txt", "moved.txt")
    write(root / "moved.txt", "moved and edited\n")
    return ["edited.txt", "moved.txt"]


def intent_to_add(root: Path) -> None:
    git(root, "add", "--intent-to-add", "new.txt")


def sparse(root: Path) -> Left:
    git(root, "sparse-checkout", "set", "--no-cone", "/edited.txt", "/new.txt")
    write(root / "folder/outside.txt", "outside the cone\n")
    return [*dirty(root), "folder/outside.txt"]


def sparse_index(root: Path) -> Left:
    commit(root, "deep/er/file.txt")
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "folder")
    write(root / "folder/inside.txt", "staged inside\n")
    git(root, "add", "folder/inside.txt")
    write(root / "folder/inside.txt", "edited inside\n")
    return [*dirty(root), "folder/inside.txt"]


def hidden_by_sparse(root: Path) -> Left:
    """A file outside of the cone, which git believes to be absent, is on disk and edited."""
    git(root, "sparse-checkout", "set", "--no-cone", "/edited.txt", "/new.txt")
    write(root / "kept.txt", "edited outside of the cone\n")
    return [*dirty(root), "kept.txt"]


def split(root: Path) -> Left:
    """What is staged stands in the shared part of the index."""
    write(root / "edited.txt", "staged, in the shared part\n")
    git(root, "add", "edited.txt")
    git(root, "update-index", "--split-index")
    write(root / "staged.txt", "staged, in the other part\n")
    git(root, "add", "staged.txt")
    write(root / "staged.txt", "on disk\n")
    return [*dirty(root), "staged.txt"]


def version_4(root: Path) -> Left:
    git(root, "update-index", "--index-version", "4")
    return staged_differs(root)


def split_version_4(root: Path) -> None:
    git(root, "update-index", "--index-version", "4")
    git(root, "update-index", "--split-index")


def untracked_cache(root: Path) -> None:
    git(root, "update-index", "--force-untracked-cache")
    git(root, "status")


def assume_unchanged(root: Path) -> None:
    git(root, "update-index", "--assume-unchanged", "edited.txt")


def skip_worktree(root: Path) -> None:
    git(root, "update-index", "--skip-worktree", "edited.txt")


def flags_that_hide(root: Path) -> Left:
    git(root, "update-index", "--assume-unchanged", "edited.txt")
    git(root, "update-index", "--skip-worktree", "kept.txt")
    write(root / "kept.txt", "hidden\n")
    return [*dirty(root), "kept.txt"]


def same_size_and_time(root: Path) -> Left:
    """An edit that git's own comparison of sizes and times cannot see."""
    git(root, "config", "core.trustCtime", "false")
    git(root, "config", "core.checkStat", "minimal")
    os.utime(root / "edited.txt", (OLD, OLD))
    git(root, "update-index", "--refresh")
    text = (root / "edited.txt").read_text()
    write(root / "edited.txt", text.swapcase())
    os.utime(root / "edited.txt", (OLD, OLD))
    return ["edited.txt"]


def conflicts_alone(root: Path) -> Left:
    write(root / "edited.txt", "stashed\n")
    git(root, "stash")
    commit(root, "edited.txt", "committed\n")
    return stopped(root, "stash", "pop")


def cut_index(root: Path) -> None:
    data = (root / ".git/index").read_bytes()
    write(root / ".git/index", data[: len(data) // 2])


def flipped_index(root: Path) -> None:
    """One bit of an object id is wrong; only the hash at the end tells. Git has no reason to read the file again."""
    os.utime(root / "deleted.txt", (OLD, OLD))
    git(root, "update-index", "-q", "--really-refresh", "deleted.txt")
    data = bytearray((root / ".git/index").read_bytes())
    data[60] ^= 1
    write(root / ".git/index", bytes(data))


def index_is_a_folder(root: Path) -> None:
    (root / ".git/index").unlink()
    (root / ".git/index").mkdir()


def missing_index(root: Path) -> None:
    (root / ".git/index").unlink()


def locked(name: str, what: str = "", *, loses: bool = True) -> State:
    build = before(lambda root: write(root / ".git" / name, ""))
    if not what:
        return State(build, naive_loses=loses)
    return State(build, f"not_plain:{what}", on_branch=True, naive_loses=loses)


def damaged(spoil: object, skipped: tuple[str, ...] = (), *, loses: bool = True) -> State:
    assert callable(spoil)
    return State(
        before(spoil),
        "not_plain:index_damaged",
        on_branch=True,
        naive_loses=loses,
        skipped=skipped,
        sound=False,
    )


INDEX = {
    "staged and on disk differ": State(staged_differs, naive_loses=True),
    "staged, then deleted": State(staged_and_deleted, remains=("AD staged.txt",), naive_loses=True),
    "staged, then taken back on disk": State(
        staged_and_taken_back, remains=("MM edited.txt",), naive_loses=True
    ),
    "staged deletion of a file that is there": State(staged_deletion),
    "staged link, a file on disk": State(staged_link, naive_loses=True),
    "staged as a program": State(staged_as_program, naive_loses=True),
    "staged rename, edited": State(staged_rename),
    "intent to add": State(before(intent_to_add)),
    "sparse checkout": State(sparse, naive_loses=True),
    "sparse checkout, edited outside": State(hidden_by_sparse, naive_loses=True),
    "sparse index": State(sparse_index, naive_loses=True),
    "split index": State(split, naive_loses=True),
    "index of version 4": State(version_4, naive_loses=True),
    "split index of version 4": State(after(split_version_4)),
    "untracked cache": State(after(untracked_cache)),
    "assume-unchanged": State(after(assume_unchanged), naive_loses=True),
    "skip-worktree": State(after(skip_worktree), naive_loses=True),
    "assume-unchanged and skip-worktree": State(flags_that_hide, naive_loses=True),
    "same size and time": State(same_size_and_time, naive_loses=True),
    "trustctime off": State(configured(core__trustCtime="false")),
    "splitIndex set": State(configured(core__splitIndex="true")),
    "manyFiles set": State(configured(feature__manyFiles="true")),
    "conflicts of a stash": State(conflicts_alone, "not_plain:conflicts", on_branch=True),
    "index.lock": locked("index.lock", "index_lock"),
    "HEAD.lock": locked("HEAD.lock", "head_lock"),
    "lock of the branch": locked("refs/heads/main.lock", "branch_lock"),
    "packed-refs.lock": locked("packed-refs.lock", loses=False),
    "config.lock": locked("config.lock", loses=False),
    "shallow.lock": locked("shallow.lock", loses=False),
    "index cut": damaged(cut_index, ("index/0/",)),
    "index with a wrong bit": damaged(
        flipped_index, ("index/0/deleted.txt: its object is missing",)
    ),
    "index empty": damaged(lambda root: write(root / ".git/index", ""), (".git/index: ",)),
    "index garbage": damaged(
        lambda root: write(root / ".git/index", "not an index at all\n"), (".git/index: ",)
    ),
    "index is a folder": damaged(index_is_a_folder),
    "index missing": State(before(missing_index), remains=ANYTHING),
}
