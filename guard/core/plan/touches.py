"""Tell whether two tasks may change the same files, by the paths that the plan says they touch."""

from collections.abc import Callable, Sequence
from functools import lru_cache

ANY_FOLDERS = "**"
_STAR, _ONE = "*", "?"


def common_path(these: Sequence[str], others: Sequence[str]) -> str | None:
    """Return the first of these paths that may name a file which one of the others names too; None if none does.

    A path is a glob as in git's ignore files: `**` is any folders, and a path without a slash is in any folder. A path that
    ends with a slash, or whose last name has neither a dot nor a wildcard, also stands for what lies below it.
    """
    return next((path for path in these if any(overlap(path, other) for other in others)), None)


@lru_cache(maxsize=4096)
def overlap(one: str, other: str) -> bool:
    """Tell whether there is a file that both globs name; where that is hard to tell, the answer is yes."""
    return _paths_meet(_parts(one), _parts(other))


def _parts(glob: str) -> tuple[str, ...]:
    path = glob.removeprefix("./")
    parts = tuple(part for part in path.casefold().split("/") if part not in ("", "."))
    begin = () if "/" in path else (ANY_FOLDERS,)
    is_file = bool(parts) and not path.endswith("/") and any(sign in parts[-1] for sign in ".*?[")
    return (*begin, *parts) if is_file else (*begin, *parts, ANY_FOLDERS)


def _paths_meet(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    return _meet(ours, theirs, ANY_FOLDERS, _names_meet)


def _names_meet(ours: str, theirs: str) -> bool:
    if not any(sign in ours + theirs for sign in "*?["):
        return ours == theirs
    return _meet(_signs(ours), _signs(theirs), _STAR, lambda a, b: a == b or _ONE in (a, b))


def _signs(name: str) -> tuple[str, ...]:
    # A set of characters counts as any character.
    signs, rest = list[str](), name
    while rest:
        end = rest.find("]", 2) if rest[0] == "[" else -1
        signs.append(_ONE if end > 0 else rest[0])
        rest = rest[end + 1 :] if end > 0 else rest[1:]
    return tuple(signs)


def _meet(
    ours: Sequence[str], theirs: Sequence[str], any_number: str, is_same: Callable[[str, str], bool]
) -> bool:
    """Tell whether some sequence fits both patterns, in which one word stands for any number of elements."""
    reached = {(0, 0)}
    ahead = [(0, 0)]
    while ahead:
        here, there = ahead.pop()
        if (here, there) == (len(ours), len(theirs)):
            return True
        ours_any = here < len(ours) and ours[here] == any_number
        theirs_any = there < len(theirs) and theirs[there] == any_number
        steps = []
        if ours_any:
            steps += [(here + 1, there), (here, there + 1)]
        if theirs_any:
            steps += [(here, there + 1), (here + 1, there)]
        if not ours_any and not theirs_any and here < len(ours) and there < len(theirs):
            steps += [(here + 1, there + 1)] if is_same(ours[here], theirs[there]) else []
        for step in steps:
            if step[0] <= len(ours) and step[1] <= len(theirs) and step not in reached:
                reached.add(step)
                ahead.append(step)
    return False
