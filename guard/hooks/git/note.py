"""Note commits for guard: git's observing hooks leave one small file for each, until the next command records it.

The files lie in the state home, one folder for each work tree. A passed `pre-commit` is a file there, too, named after the git
process: the same process calls `post-commit`, unless the commit skipped its checks.
"""

import os
import time

from guard.core.hooks.event_kinds import CHECKED_FIRST, MARK
from guard.hooks import spool
from guard.hooks.agent.payload import Document, moment_fields
from guard.hooks.ancestors import calling_git
from guard.hooks.faults import state_home
from guard.hooks.git.work_tree import HookWorkTree, is_oid, open_work_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "commits.d"
PASSED = "passed-"
SEEN = "pre-commit.seen"
"""Its time is when `pre-commit` was last called here: only where it is called can a commit be made past it."""
SEEN_SECONDS = 14 * 86400.0
MOST_REWRITES = 500
_MOST_LINE = 512
_HOWS = {
    "commit": "commit",
    "commit (initial)": "initial",
    "commit (amend)": "amend",
    "commit (merge)": "merge",
    "commit (cherry-pick)": "cherry-pick",
}
_BEGINNINGS = ("cherry-pick", "revert", "rebase", "pull", "am")


def note_commit(environ: "Mapping[str, str]") -> None:
    folder, work_tree = locate(environ)
    if work_tree is None:
        return
    oid, branch = work_tree.head()
    if oid is None:
        oid = _ask_head(environ)
    if oid is None:
        return
    move = work_tree.last_move()
    previous, how = (move[0], _how(move[2])) if move and move[1] == oid else (None, "other")
    note = _note(environ, "post-commit")
    note |= {"oid": oid, "branch": _line(branch), "how": how}
    note["previous"] = previous if previous and previous.strip("0") else None
    note["verified"] = _is_verified(folder, how)
    spool.write_document(folder, spool.next_name(), note)


def note_rewrites(environ: "Mapping[str, str]", command: str, data: bytes) -> None:
    # `data` is what git writes to the hook's standard input.
    folder, work_tree = locate(environ)
    if work_tree is None:
        return
    lines = (line.split(" ") for line in data.decode("ascii", "replace").splitlines())
    pairs = [
        [words[0], words[1]] for words in lines if len(words) > 1 and all(map(is_oid, words[:2]))
    ]
    if not pairs:
        return  # Some programs that call hooks do not pass git's lines on.
    note = _note(environ, "post-rewrite")
    note |= {"command": _line(command) or "", "count": len(pairs)}
    note["rewrites"] = pairs[-MOST_REWRITES:]
    spool.write_document(folder, spool.next_name(), note)


def note_passed_checks(environ: "Mapping[str, str]") -> None:
    folder, work_tree = locate(environ)
    if work_tree is not None:
        expect_checks(folder)
        git = calling_git()
        if git is not None:
            spool.write_document(folder, PASSED + git, {})


def has_passed_checks(folder: str) -> bool:
    """Tell whether the git process that makes this commit has called `pre-commit`, which passed."""
    git = calling_git()
    return git is not None and os.path.exists(os.path.join(folder, PASSED + git))


def expect_checks(folder: str) -> None:
    """Note that `pre-commit` is called here: from now on a commit without it has bypassed it."""
    spool.write_document(folder, SEEN, {})


def locate(environ: "Mapping[str, str]") -> tuple[str, HookWorkTree | None]:
    """Return the work tree that git called the hook for, if any, and the folder of its notes."""
    home = state_home(environ)
    root = spool.find_root(home, os.getcwd()) if home is not None else None
    if home is None or root is None:
        return "", None
    return notes_folder(home, root), open_work_tree(environ, root)


def notes_folder(home: str, root: str) -> str:
    return os.path.join(home, FOLDER, spool.work_tree_key(root))


def _note(environ: "Mapping[str, str]", event: str) -> Document:
    return {
        "schema": "guard/noted-commit/1",
        "event": event,
        **moment_fields(),
        "mark": _line(environ.get(MARK)),
    }


def _how(words: str) -> str:
    action = words.partition(":")[0]
    if action in _HOWS:
        return _HOWS[action]
    return next((word for word in _BEGINNINGS if action.split(" ")[0] == word), "other")


def _is_verified(folder: str, how: str) -> bool | None:
    # None where git would not call `pre-commit` first, or nothing tells whether it did.
    git = calling_git()
    if git is not None:
        try:
            os.unlink(os.path.join(folder, PASSED + git))
            return True
        except OSError:
            pass
    if git is None or how not in CHECKED_FIRST:
        return None
    try:
        seen = os.stat(os.path.join(folder, SEEN), follow_symlinks=False).st_mtime
    except OSError:
        return None
    return False if time.time() - seen <= SEEN_SECONDS else None


def _ask_head(environ: "Mapping[str, str]") -> str | None:
    # Where refs are no plain files, git has to be asked.
    from guard.hooks.git.work_tree import ask_git

    oid = (ask_git(environ, "rev-parse", "--verify", "--quiet", "HEAD") or b"").decode().strip()
    return oid if is_oid(oid) else None


def _line(text: str | None) -> str | None:
    # Shortened, and without lone surrogates, which no file can hold.
    return None if text is None else text[:_MOST_LINE].encode("utf-8", "replace").decode()
