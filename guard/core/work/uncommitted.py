"""What an iteration left uncommitted, told from what was dirty before it: by content, never by times alone."""

from collections.abc import Container, Iterator, Sequence
from hashlib import sha256

from guard.core.base.fields import Count, Frozen, Oid
from guard.core.iteration.events import DirtyFile

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
    """Files that were dirty before and are as they were: the user's."""
    gone: tuple[str, ...] = ()
    """Files that the user had changed before and that are no longer dirty: committed, set back or deleted since."""
    truncated: bool = False
    """Whether there are more than are listed."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every file of them, once, in the order in which they are listed."""
        return tuple(dict.fromkeys((*self.staged, *self.unstaged, *self.untracked)))

    @property
    def any(self) -> bool:
        return bool(self.staged or self.unstaged or self.untracked or self.stashed)


def left_over(
    before: tuple[DirtyFile, ...],
    now: tuple[DirtyFile, ...],
    stashed: tuple[str, ...] = (),
    aside: Container[str] = (),
) -> Uncommitted:
    """What is dirty now, without what was dirty before and is the user's; `aside` are paths that are the user's, too."""
    left = [file for file in changed_since(before, now) if file.path not in aside]
    staged = [file.path for file in left if file.staged]
    unstaged = [file.path for file in left if file.unstaged]
    untracked = [file.path for file in left if file.untracked]
    return Uncommitted(
        staged=tuple(staged[:MOST_NAMES]),
        unstaged=tuple(unstaged[:MOST_NAMES]),
        untracked=tuple(untracked[:MOST_NAMES]),
        stashed=stashed[:MOST_NAMES],
        users=len(now) - len(left),
        gone=tuple(_gone_since(before, now))[:MOST_NAMES],
        truncated=max(map(len, (staged, unstaged, untracked, stashed))) > MOST_NAMES,
    )


def changed_since(
    before: tuple[DirtyFile, ...], now: tuple[DirtyFile, ...]
) -> tuple[DirtyFile, ...]:
    """The files of it: dirty now, and not as the user had left them before."""
    earlier = {file.path: file for file in before if file.left_by == "user"}
    return tuple(file for file in now if not _unchanged(earlier.get(file.path), file))


def mixed_with_users(before: tuple[DirtyFile, ...], left: tuple[DirtyFile, ...]) -> set[str]:
    """Of what was left, the paths that hold the user's work too: changed before, or with what stood elsewhere before."""
    users = [file for file in before if file.left_by == "user"]
    paths = {file.path for file in users}
    contents = {file.content for file in users if file.kind in _WITH_CONTENT} - {None, _EMPTY}
    return {file.path for file in left if file.path in paths or file.content in contents}


def _gone_since(before: tuple[DirtyFile, ...], now: tuple[DirtyFile, ...]) -> Iterator[str]:
    dirty = {file.path for file in now}
    for file in before:
        if file.left_by == "user" and file.kind != "missing" and file.path not in dirty:
            yield file.path


def replaced_since(before: tuple[DirtyFile, ...], now: tuple[DirtyFile, ...]) -> int:
    """How many files of the user's are no longer what they were: gone, changed, or staged otherwise."""
    there = {file.path: file for file in now}
    users = (file for file in before if file.left_by == "user" and file.kind != "missing")
    return sum(
        file.path not in there
        or not same_content(file, there[file.path])
        or (file.index is not None and file.index != there[file.path].index)
        for file in users
    )


def _unchanged(before: DirtyFile | None, now: DirtyFile) -> bool:
    """Whether it is what the user left: on disk, and nothing else is staged than before or than on disk."""
    if before is None or not same_content(before, now):
        return False
    return now.index == before.index or not now.staged or not now.unstaged


def same_content(one: DirtyFile, other: DirtyFile) -> bool:
    """Whether the same is on disk, by its bytes, or by size and time where they were not read."""
    if one.kind != other.kind:
        return False
    if one.content is None or other.content is None:
        return one.stamp == other.stamp
    return one.content == other.content


def attributed(files: Sequence[DirtyFile], carried: Sequence[DirtyFile]) -> tuple[DirtyFile, ...]:
    """The dirty files of a baseline, with those marked that an earlier iteration left and nobody touched since."""
    left = {file.path: file for file in carried}
    return tuple(
        file.model_copy(update={"left_by": "iteration"})
        if file.path in left and same_content(left[file.path], file)
        else file
        for file in files
    )
