"""Say where a Python would load the project's code from.

That Python itself, of version 3.7 or later, runs this; it imports nothing of guard.

    python import_paths.py PROJECT CHECKOUT

prints, as JSON: `folders`, its import paths that lie in the project; `names`, the modules that an editable install or such a
folder leads there; `loaded`, what it would load from the project if it runs in the checkout.
"""

import importlib.util
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_PLACES = 50


class ImportPaths:
    """What this Python looks through for modules."""

    def __init__(self, project: str, checkout: str) -> None:
        self.project, self.checkout = project, checkout
        self._installed = [os.path.realpath(path) for path in {sys.prefix, sys.base_prefix}]
        self.folders = [os.path.realpath(path) for path in sys.path if self._is_code(path)]
        self.names = dict(self._mapped())
        for folder in self.folders:
            for name, path in _modules(folder):
                self.names.setdefault(name, path)

    def _is_code(self, path: object) -> bool:
        """Whether a path is the project's own code, and not installed in an environment that lies in the project."""
        if not isinstance(path, str) or not path:
            return False
        path = os.path.realpath(path)
        if not _lies_in(path, self.project) or _lies_in(path, self.checkout):
            return False
        if {"site-packages", "dist-packages"}.intersection(path.split(os.sep)):
            return False
        return not any(_lies_in(path, top) and top != self.project for top in self._installed)

    def _mapped(self) -> "Iterator[tuple[str, str]]":
        # The finders of editable installs have tables of modules.
        for finder in sys.meta_path:
            module = sys.modules.get(getattr(finder, "__module__", ""))
            for table in (getattr(module, "MAPPING", None), getattr(module, "NAMESPACES", None)):
                for name, paths in table.items() if isinstance(table, dict) else ():
                    for path in [paths] if isinstance(paths, str) else paths:
                        if self._is_code(path):
                            yield name, os.path.realpath(path)

    def loaded(self) -> "Iterator[str]":
        """Yield what would be loaded from the project."""
        for name in self.names:
            try:
                spec = importlib.util.find_spec(name)
            except Exception:  # noqa: S112 - a package of the project may do anything when it is loaded.
                continue
            if spec is not None:
                places = [spec.origin, *(spec.submodule_search_locations or ())][:_MOST_PLACES]
                yield from (str(place) for place in places if self._is_code(place))


def _lies_in(path: str, folder: str) -> bool:
    return (path + os.sep).startswith(folder.rstrip(os.sep) + os.sep)


def _modules(folder: str) -> "Iterator[tuple[str, str]]":
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, entry)
        is_module = entry.endswith(".py")
        name = entry[:-3] if is_module else entry
        is_package = os.path.isfile(os.path.join(path, "__init__.py"))
        if name.isidentifier() and (is_module or is_package):
            yield name, path


def main(project: str, checkout: str) -> None:
    # A script's own folder comes first; a program in the checkout has the checkout there.
    sys.path[0] = checkout
    paths = ImportPaths(project, checkout)
    told = {"folders": paths.folders, "names": paths.names, "loaded": list(paths.loaded())}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
