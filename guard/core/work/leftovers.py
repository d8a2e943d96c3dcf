"""Tell what an iteration left uncommitted from what was dirty before it: by content, never by times alone."""

from collections.abc import Container, Iterator, Sequence
from hashlib import sha256

from guard.core.base.fields import Count, Frozen, Oid
from guard.core.iteration.facts import DirtyFile

MOST_NAMES = 1000
_WITH_CONTENT = ("file", "executable", "link")
_EMPTY = sha256(b"").hexdigest()


class Uncommitted(Frozen):
    """What the iteration left uncommitted."""

    staged: tuple[str, ...] = ()
    unstaged: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    stashed: tuple[Oid, ...] = ()
    users: Count = 0
    """How many files were dirty before and are unchanged: the user's."""
    gone: tuple[str, ...] = ()
    """Files that the user had changed before and that are clean now: committed, reset or deleted since."""
    truncated: bool = False
    """Whether there are more than are listed."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.staged, *self.unstaged, *self.untracked)))

    @property
    def has_any(self) -> bool:
        return bool(self.staged or self.unstaged or self.untracked or self.stashed)


def find_leftovers(
    before: tuple[DirtyFile, ...],
    now: tuple[DirtyFile, ...],
    stashed: tuple[str, ...] = (),
    aside: Container[str] = (),
) -> Uncommitted:
    """Return what is dirty now and was not left so by the user; `aside` are more paths of the user's."""
    left = [file for file in files_changed_since(before, now) if file.path not in aside]
    staged = [file.path for file in left if file.staged]
    unstaged = [file.path for file in left if file.unstaged]
    untracked = [file.path for file in left if file.untracked]
    return Uncommitted(
        staged=tuple(staged[:MOST_NAMES]),
        unstaged=tuple(unstaged[:MOST_NAMES]),
        untracked=tuple(untracked[:MOST_NAMES]),
        stashed=stashed[:MOST_NAMES],
        users=len(now) - len(left),
        gone=tuple(_find_gone(before, now))[:MOST_NAMES],
        truncated=max(map(len, (staged, unstaged, untracked, stashed))) > MOST_NAMES,
    )


def files_changed_since(
    before: tuple[DirtyFile, ...], now: tuple[DirtyFile, ...]
) -> tuple[DirtyFile, ...]:
    earlier = {file.path: file for file in before if file.left_by == "user"}
    return tuple(file for file in now if not _is_unchanged(earlier.get(file.path), file))


def paths_with_users_work(before: tuple[DirtyFile, ...], left: tuple[DirtyFile, ...]) -> set[str]:
    """Return the leftover paths that hold the user's work too: dirty before, or with the content of such a file."""
    users = [file for file in before if file.left_by == "user"]
    paths = {file.path for file in users}
    contents = {file.content for file in users if file.kind in _WITH_CONTENT} - {None, _EMPTY}
    return {file.path for file in left if file.path in paths or file.content in contents}


def _find_gone(before: tuple[DirtyFile, ...], now: tuple[DirtyFile, ...]) -> Iterator[str]:
    dirty = {file.path for file in now}
    for file in before:
        if file.left_by == "user" and file.kind != "missing" and file.path not in dirty:
            yield file.path


def find_replaced(before: tuple[DirtyFile, ...], now: tuple[DirtyFile, ...]) -> tuple[str, ...]:
    """Return the paths of the user's files that are gone, changed, or staged differently."""
    there = {file.path: file for file in now}
    users = (file for file in before if file.left_by == "user" and file.kind != "missing")
    return tuple(
        file.path
        for file in users
        if file.path not in there
        or not has_same_content(file, there[file.path])
        or (file.index is not None and file.index != there[file.path].index)
    )


def has_changed(before: tuple[DirtyFile, ...], left: tuple[DirtyFile, ...]) -> bool:
    """Tell whether any file that was left is not as it was before, whoever had left it so."""
    earlier = {file.path: file for file in before}
    return any(
        file.path not in earlier or not has_same_content(earlier[file.path], file) for file in left
    )


def _is_unchanged(before: DirtyFile | None, now: DirtyFile) -> bool:
    # Same content on disk as the user left, and nothing new staged beside it.
    if before is None or not has_same_content(before, now):
        return False
    return now.index == before.index or not now.staged or not now.unstaged


def has_same_content(file: DirtyFile, other: DirtyFile) -> bool:
    """Compare two files by their bytes, or by size and time if the bytes were not read."""
    if file.kind != other.kind:
        return False
    if file.content is None or other.content is None:
        return file.stamp == other.stamp
    return file.content == other.content


def attribute_files(
    files: Sequence[DirtyFile], carried: Sequence[DirtyFile]
) -> tuple[DirtyFile, ...]:
    """Mark the dirty files of a baseline that an earlier iteration left and that are unchanged since."""
    left = {file.path: file for file in carried}
    return tuple(
        file.model_copy(update={"left_by": "iteration"})
        if file.path in left and has_same_content(left[file.path], file)
        else file
        for file in files
    )
