"""Paths in a snapshot: how a name that git refuses is escaped, and which folders a tool may rebuild."""

from collections.abc import Container, Iterator

from guard.core.base.first_use import late_pattern

LINK = b"120000"
GITLINK = b"160000"
"""The modes of a link and of a submodule in a tree of git."""
_ESCAPE = b"escaped%"
_HFS_IGNORES = late_pattern("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def is_refused_by_git(name: bytes) -> bool:
    """Tell whether git on some system takes this name for its own directory, and so refuses it in a tree."""
    text = _HFS_IGNORES.sub("", name.decode(errors="replace")).lower()
    pieces = (piece.partition(":")[0].rstrip(" .") for piece in text.split("\\"))
    return any(piece in (".git", "git~1") for piece in pieces)


def tree_path(path: bytes) -> bytes:
    """The path under which a file stands in a snapshot: its own, but for names that git refuses."""
    if b".g" not in path.lower() and b"git~1" not in path.lower() and _ESCAPE not in path:
        return path
    return b"/".join(_escape(name) for name in path.split(b"/"))


def _escape(name: bytes) -> bytes:
    if not is_refused_by_git(name) and not name.startswith(_ESCAPE):
        return name
    return _ESCAPE + name.replace(b"%", b"%25").replace(b"\\", b"%5c")


def work_tree_path(place: bytes) -> bytes:
    """The path of the file that stands at this place in a snapshot: the way back from `tree_path`."""
    if _ESCAPE not in place:
        return place
    return b"/".join(_unescape(name) for name in place.split(b"/"))


def _unescape(name: bytes) -> bytes:
    if not name.startswith(_ESCAPE):
        return name
    return name.removeprefix(_ESCAPE).replace(b"%5c", b"\\").replace(b"%25", b"%")


_REBUILT = frozenset(
    b"node_modules __pycache__ .mypy_cache .pytest_cache .ruff_cache .tox .nox".split()
)


PACKAGES = "installed packages"
CACHE = "a cache"
ENVIRONMENT = "a virtual environment"
ENVIRONMENT_PROGRAMS = (b"bin", b"Scripts")
ENVIRONMENT_FILES = (b"pyvenv.cfg", b"lib64")
"""What a tool makes directly in a virtual environment, besides folders."""
ENVIRONMENT_LIBRARIES = (b"lib", b"lib64", b"Lib")
_ENVIRONMENT_FOLDERS = (*ENVIRONMENT_PROGRAMS, b"include", b"Include")
_INSTALLED = late_pattern(rb"(?:python|pypy)[0-9.]*t?|site-packages")


def why_rebuilt(name: bytes, inside: Container[bytes]) -> str | None:
    """What a folder is, if a tool usually rebuilds it from what the project says.

    The name alone proves nothing: only what git ignores in such a folder is left out of a snapshot.
    """
    if b".git" in inside:
        return None
    if name in _REBUILT:
        return PACKAGES if name == b"node_modules" else CACHE
    if name == b"target" and b"CACHEDIR.TAG" in inside:
        return CACHE
    return None


def may_be_environment(inside: Container[bytes]) -> bool:
    return b"pyvenv.cfg" in inside and any(name in inside for name in ENVIRONMENT_PROGRAMS)


def is_environment_part(name: bytes, *, in_library: bool) -> bool:
    """Tell whether a folder in a virtual environment, or in its library folder, is made by the tool."""
    if in_library:
        return _INSTALLED.fullmatch(name) is not None
    return name in _ENVIRONMENT_FOLDERS


def is_relative(path: bytes) -> bool:
    return bool(path) and not {b"", b".", b".."} & set(path.split(b"/")) and b"\0" not in path


def folders_above(path: bytes) -> Iterator[bytes]:
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)
