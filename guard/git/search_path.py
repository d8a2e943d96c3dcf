"""Where git is looked for: not in a work tree, where an agent could plant one, as in a project's own virtual environment."""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path


def outside(environ: Mapping[str, str], root: Path | None = None) -> dict[str, str]:
    """The environment with a search path that leads into no work tree, and not below this folder."""
    path = environ.get("PATH", os.defpath)
    return {**environ, "PATH": _outside(path, None if root is None else os.fspath(root))}


@lru_cache(maxsize=64)
def _outside(path: str, root: str | None) -> str:
    """Relative entries go too: they lead to wherever somebody stands."""
    entries = [entry for entry in path.split(os.pathsep) if os.path.isabs(entry)]
    kept = [entry for entry in entries if not _is_inside(Path(os.path.realpath(entry)), root)]
    return os.pathsep.join(kept)


def _is_inside(folder: Path, root: str | None) -> bool:
    if root is not None and folder.is_relative_to(os.path.realpath(root)):
        return True
    return any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))
