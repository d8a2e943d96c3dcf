"""`prepare-commit-msg`: a commit that is made in an iteration says so, by a trailer.

Most commits are a person's: that none is open is told from the files, before anything is loaded.
"""

import os
from contextlib import suppress

from guard.hooks.faults import state_home
from guard.hooks.git.location import here
from guard.hooks.git.note import MARK
from guard.hooks.spool import known_workspace, root_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LEFT_ALONE = ("merge", "squash")
"""What git itself words: of work that has its own trailers already."""


_MOST_BYTES = 1024 * 1024


def prepared(given: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    """Add the trailer of the open iteration to the message in this file."""
    path = given[0] if given else environ.get("PRE_COMMIT_COMMIT_MSG_FILENAME", "")
    source = given[1] if len(given) > 1 else environ.get("PRE_COMMIT_COMMIT_MSG_SOURCE", "")
    if not path or source in _LEFT_ALONE or _is_nothing_open(environ):
        return 0
    message = os.path.abspath(path)
    from guard.hooks.git.trailer import add

    add(message, environ)
    return 0


def _is_nothing_open(environ: "Mapping[str, str]") -> bool:
    """Whether it is certain without a further look that no iteration is open here."""
    if environ.get(MARK) or environ.get("GUARD_WORKSPACE"):
        return False
    home = state_home(environ)
    root = root_of(home, os.getcwd()) if home is not None else None
    if home is None or root is None or here(environ, root) is None:
        return True
    workspace = known_workspace(home, root)
    return workspace is not None and not (workspace and _may_be_open(workspace))


def _may_be_open(workspace: str) -> bool:
    """Whether a run of any work tree has an iteration that is open, as far as its view was written."""
    folder = os.path.join(workspace, "worktrees.d")
    try:
        for name in os.listdir(folder):
            with (
                suppress(FileNotFoundError),
                open(os.path.join(folder, name, "run.json"), "rb") as view,
            ):
                if b'"open_iteration": null' not in view.read(_MOST_BYTES):
                    return True
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
