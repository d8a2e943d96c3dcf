"""Share folders of the work tree, such as virtual environments, with a checkout, and see that no code comes with them.

What is installed in them may lead back into the project: editable installs, `.pth` files, links of workspaces. Then a run would
test the work tree instead of the checkout. So the checkout's own folders go first, and what a program would load is asked of it
before a run counts.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guard.core.base.paths import path_line
from guard.system.processes import run
from guard.system.programs import find_as_shell

_ASK_SECONDS = 20.0
_MOST_ENTRIES = 2_000_000
_MOST_NAMED = 20
_MOST_ANSWER_BYTES = 16 * 1024 * 1024
_LINKED_BY_ENTRY = "node_modules"
_DEPENDENCIES = ("dependencies", "peerDependencies", "optionalDependencies")
_MOST_PACKAGE_BYTES = 1024 * 1024
_IMPORT_PATHS = Path(__file__).with_name("import_paths.py")


@dataclass(frozen=True)
class Shared:
    """What was shared with a checkout."""

    environ: Mapping[str, str]
    """The environment in which the checkout's own code goes first."""
    leaks: tuple[str, ...] = ()
    """What leads into the work tree all the same."""
    notes: tuple[str, ...] = ()


@dataclass
class Sharing:
    """Shares folders of one work tree with its checkouts."""

    project: Path
    names: tuple[str, ...]
    environ: Mapping[str, str]
    _links: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def share(self, folder: Path) -> Shared:
        """Link the folders into a checkout, and return in which environment to run there."""
        project, folder = Path(os.path.realpath(self.project)), Path(os.path.realpath(folder))
        notes, leaks = list[str](), list[str]()
        for name in self.names:
            said = self._refuse(name, folder)
            if said is not None:
                notes.append(said)
                continue
            leaks += _link(project, project / name, folder / name)
        environ = self._environment(project, folder)
        pythons = _pythons(folder, self.names, environ)
        first = _ask_all(pythons, project, folder, environ)
        for python in pythons:
            environ, found = _put_first(python, first[python], project, folder, environ)
            leaks += found
        return Shared(environ, tuple(dict.fromkeys(leaks))[:_MOST_NAMED], tuple(notes))

    def _refuse(self, name: str, folder: Path) -> str | None:
        """Return why a folder cannot be shared."""
        parts = Path(name).parts
        if not parts or os.path.isabs(name) or ".." in parts or parts[0] == ".git":
            return f"guard shares no folder outside of the project: {name}"
        if not (self.project / name).is_dir():
            return f"the project has no folder {name} to share"
        if os.path.lexists(folder / name):
            return f"the commit has {name} itself, so it is not shared"
        if os.path.realpath(folder / name) != str(folder / name):
            return f"{name} lies behind a link, so it is not shared"
        return None

    def _environment(self, project: Path, folder: Path) -> dict[str, str]:
        """Return the environment with paths of the project's code led to the checkout."""
        environ = dict(self.environ)
        for name in ("PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB", "CLASSPATH"):
            if name in environ:
                parts = environ[name].split(os.pathsep)
                environ[name] = os.pathsep.join(
                    _lead(part, project, folder) if name != "NODE_PATH" else part for part in parts
                )
        if any(Path(name).name == ".venv" for name in self.names):
            # uv would install the checkout itself into the environment that the user works with.
            environ.setdefault("UV_NO_SYNC", "1")
        if self.names:
            environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
        return environ


def _lead(path: str, project: Path, folder: Path) -> str:
    """Return the checkout's counterpart of a path in the project."""
    real = os.path.realpath(path) if path else path
    if not path or not os.path.isabs(path) or not Path(real).is_relative_to(project):
        return path
    return str(folder / os.path.relpath(real, project))


def _link(project: Path, source: Path, target: Path) -> Iterator[str]:
    """Make the links; yield what leads from the shared folder into the project's code."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.name != _LINKED_BY_ENTRY:
        target.symlink_to(source)
        yield from _leading_back(project, source)
        return
    target.mkdir()
    packages = set[str]()
    for name in _entries(source):
        place, made = source / name, target / name
        made.parent.mkdir(parents=True, exist_ok=True)
        if _leads_out(project, source, place):
            # A relative link leads to the checkout's own package, as it leads to the project's there.
            counterpart = target.parent / os.path.relpath(os.path.realpath(place), source.parent)
            made.symlink_to(os.path.relpath(counterpart, made.parent))
            packages.add(name)
        else:
            made.symlink_to(place)
    known = {str(source / name) for name in packages}
    known |= {str(source / ".bin")} if (source / ".bin").is_dir() else set()
    yield from _leading_back(project, source, known)
    yield from _users(source, packages)


def _entries(folder: Path) -> Iterator[str]:
    """Yield the packages of a node_modules: with scopes, and each program of `.bin`."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        inside = entry.name.startswith("@") or entry.name == ".bin"
        if inside and entry.is_dir(follow_symlinks=False):
            yield from (f"{entry.name}/{below}" for below in sorted(os.listdir(entry.path)))
        else:
            yield entry.name


def _leads_out(project: Path, folder: Path, place: Path) -> bool:
    """Whether a link leads into the project, but out of the shared folder."""
    if not place.is_symlink():
        return False
    real = Path(os.path.realpath(place))
    return real.is_relative_to(project) and not real.is_relative_to(folder)


def _leading_back(
    project: Path, folder: Path, known: frozenset[str] | set[str] = frozenset()
) -> Iterator[str]:
    """Yield the links below a folder that lead into the project's code."""
    ahead, seen = [str(folder)], 0
    while ahead:
        for entry in os.scandir(ahead.pop()):
            seen += 1
            if seen > _MOST_ENTRIES:
                yield f"{path_line(os.fsencode(folder.name))} (it has too many files to look through)"
                return
            if entry.path in known:
                continue
            if entry.is_symlink():
                if _leads_out(project, folder, Path(entry.path)):
                    yield path_line(os.fsencode(os.path.relpath(entry.path, project)))
            elif entry.is_dir(follow_symlinks=False):
                ahead.append(entry.path)


def _users(folder: Path, packages: set[str]) -> Iterator[str]:
    """Yield the installed packages that load a package of the project: they find that of the work tree."""
    if not packages:
        return
    for file in folder.rglob("package.json"):
        try:
            if file.is_symlink() or not stat.S_ISREG(file.lstat().st_mode):
                continue
            with file.open("rb") as opened:
                found = json.loads(opened.read(_MOST_PACKAGE_BYTES))
            needs = {name for key in _DEPENDENCIES for name in found.get(key) or ()}
        except (OSError, ValueError, AttributeError, TypeError, RecursionError):
            continue
        if needs & packages:
            yield path_line(os.fsencode(os.path.relpath(file, folder.parent)))


def _pythons(folder: Path, names: tuple[str, ...], environ: Mapping[str, str]) -> list[str]:
    """Return the Pythons that the command may run: those of shared environments, and the first in PATH."""
    found = [str(folder / name / "bin" / "python") for name in names]
    found += [find_as_shell(name, environ) or "" for name in ("python", "python3")]
    real: dict[str, str] = {}
    for path in found:
        if path and os.access(path, os.X_OK):
            # Two environments may have the same program behind their links; one has it under several names.
            is_own = _is_environment(path)
            key = os.path.realpath(os.path.dirname(path) if is_own else path)
            real.setdefault(key, path)
    return list(real.values())


def _is_environment(python: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(os.path.dirname(python)), "pyvenv.cfg"))


def _ask_all(
    pythons: list[str], project: Path, folder: Path, environ: Mapping[str, str]
) -> dict[str, dict[str, Any] | None]:
    """Ask all of them at once: each takes as long to start as a small test."""
    with ThreadPoolExecutor(max(1, len(pythons))) as pool:
        found = pool.map(lambda python: _ask(python, project, folder, environ), pythons)
        return dict(zip(pythons, found, strict=True))


def _put_first(
    python: str,
    told: dict[str, Any] | None,
    project: Path,
    folder: Path,
    environ: dict[str, str],
) -> tuple[dict[str, str], list[str]]:
    """Lead what this Python would load of the project to the checkout; return what leads into the project all the same."""
    if told is None or not (told["folders"] or told["names"]):
        return environ, []
    places = [*told["folders"], *map(os.path.dirname, told["names"].values())]
    first = [_lead(place, project, folder) for place in dict.fromkeys(places)]
    rest = [part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    environ = {**environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys([*first, *rest]))}
    again = _ask(python, project, folder, environ)
    loaded = told["names"].values() if again is None else again["loaded"]
    return environ, [path_line(os.fsencode(os.path.relpath(path, project))) for path in loaded]


def _ask(
    python: str, project: Path, folder: Path, environ: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return what a Python says of its import paths; None if it says nothing."""
    words = [python, str(_IMPORT_PATHS), str(project), str(folder)]
    try:
        found = run(
            words,
            environ=environ,
            time_limit=_ASK_SECONDS,
            cwd=folder,
            most_stdout=_MOST_ANSWER_BYTES,
            leaves_nothing=True,
            chosen=True,
        )
        told: dict[str, Any] = json.loads(found.stdout)
        return told
    except (OSError, ValueError):
        return None
