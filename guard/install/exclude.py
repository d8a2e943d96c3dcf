"""Keep a settings file that is for one user out of commits: by a line in git's own list for this clone, `info/exclude`."""

import os
from pathlib import Path

from guard.context.invocation import Invocation
from guard.errors import GuardError
from guard.git.ignore_rules import find_ignored_paths
from guard.git.locate import linked_work_trees
from guard.git.reader import RepositoryReader
from guard.install import settings_file

_MARK = "# guard: settings with its hooks, for this clone only"
_FILE = "info/exclude"


def is_tracked(guard: Invocation, path: Path) -> bool:
    name = os.path.relpath(path, guard.repository.root)
    return bool(RepositoryReader(guard.repository, guard.environ).ask("ls-files", "-z", "--", name))


def keep_out(guard: Invocation, path: Path, *, dry_run: bool) -> str:
    """Let git ignore an untracked file, and return a note on what keeps it out of commits, or that nothing does."""
    name = os.path.relpath(path, guard.repository.root)
    try:
        if is_tracked(guard, path):
            return f"git tracks {name}: the hooks go into its next commit; --user keeps them to yourself"
        reader = RepositoryReader(guard.repository, guard.environ)
        asking = reader.with_variable("GIT_LITERAL_PATHSPECS", "0").ask
        if find_ignored_paths(asking, [os.fsencode(name)]).rules:
            return f"git ignores {name}: no agent commits it"
        if not dry_run:
            _edit(guard, _line(name), add=True)
    except GuardError as error:
        return f"{name} is not kept out of commits: {error.message}"
    return f"a line in git's {_FILE} keeps {name} out of commits"


def let_in(guard: Invocation, path: Path) -> None:
    """Remove the line, unless another work tree of this clone still has the file."""
    name = os.path.relpath(path, guard.repository.root)
    others = [guard.repository.common_dir.parent, *linked_work_trees(guard.repository.common_dir)]
    root = os.path.realpath(guard.repository.root)
    if any((tree / name).exists() for tree in others if os.path.realpath(tree) != root):
        return
    _edit(guard, _line(name), add=False)


def _file(guard: Invocation) -> Path:
    """Return the list with all links followed; raise an error if it lies outside of the git directory."""
    common = guard.repository.common_dir
    return settings_file.resolve(common / _FILE, common)


def _line(name: str) -> str:
    special = "".join(f"\\{letter}" if letter in "\\*?[" else letter for letter in name)
    return f"{_MARK}\n/{special}\n"


def _edit(guard: Invocation, line: str, *, add: bool) -> None:
    path = _file(guard)
    before = settings_file.read_text(path)
    text = before or ""
    if add == (line in text):
        return
    if add:
        settings_file.make_folders(settings_file.folders_to_make(path))
        after = (text if not text or text.endswith("\n") else f"{text}\n") + line
    else:
        after = text.replace(line, "", 1)
    settings_file.replace_text(path, before, after)
