"""Find the programs that guard starts for itself, where no agent can have planted one, and give them a safe environment.

An agent writes the repository's files, so no program is taken from there: from none of its work trees, not from its git
directory, not through a link that leads there, and not by a relative entry of the search path. Other work trees are left out
too, except those that hold the user's tools. A program that the user names by its path is the user's choice.

Hooks load this module, and a commit waits for them, so it imports next to nothing.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LISTS = frozenset(
    {
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "GCONV_PATH", "DYLD_INSERT_LIBRARIES"),
        *("DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_VERSIONED_LIBRARY_PATH"),
        *("DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_FRAMEWORK_PATH", "DYLD_VERSIONED_FRAMEWORK_PATH"),
        *("PYTHONPATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "RUBYLIB", "GEM_PATH", "CLASSPATH"),
    }
)
"""Variables with a list of places that code is loaded from: entries that lead into the repository are taken out."""
_PLACES = frozenset(
    {
        *("GNUPGHOME", "PYTHONHOME", "PYTHONUSERBASE", "GEM_HOME", "ZDOTDIR", "OPENSSL_CONF"),
        *("OPENSSL_MODULES", "OPENSSL_ENGINES", "SHELL", "SSH_ASKPASS", "SSH_SK_PROVIDER"),
        *("NPM_CONFIG_USERCONFIG", "NPM_CONFIG_GLOBALCONFIG", "NPM_CONFIG_PREFIX"),
        *("npm_config_userconfig", "npm_config_globalconfig", "npm_config_prefix"),
    }
)
"""Variables with one place whose files are or name programs: dropped if it is relative or in the repository."""
_NAMES = frozenset({"LD_PRELOAD", "LD_AUDIT", "SHELL", "SSH_ASKPASS", "SSH_SK_PROVIDER"})
"""Of these, those in which a name without a folder is looked up elsewhere, and is not a file of the current folder."""
_CODE = frozenset(
    {
        *("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND"),
        *("PERL5OPT", "PERL5DB", "RUBYOPT", "LUA_INIT", "LUA_PATH", "LUA_CPATH"),
        *("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"),
        *("PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT"),
        *("PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "EDITOR", "VISUAL", "BROWSER"),
    }
)
"""Variables with code or a command in them: programs that guard starts for itself need none of them."""
_NODE_FILES = frozenset(
    {
        *("-r", "--require", "--import", "--loader", "--experimental-loader"),
        *("--env-file", "--openssl-config", "--experimental-config-file"),
    }
)
"""Options of Node.js that name a file to load."""
_STARTED_BY_OTHERS = (
    *("env", "sh", "bash", "node", "deno", "bun", "python", "python3", "perl", "ruby"),
    *("git", "gpg", "gpgsm", "gpg-agent", "pinentry", "ssh", "ssh-keygen"),
    *("cat", "cmp", "ln", "mv", "rm", "less", "tmux", "ps"),
)
"""Programs that those which guard starts look up themselves: by `#!/usr/bin/env`, to sign, in a shell's script."""
_TOOL_FOLDERS = (".config", ".local", ".local/share")
_HOMEBREW = "/opt/homebrew"
_SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/opt", "/nix")

_CHECKED = _LISTS | _PLACES | _CODE | {"NODE_OPTIONS"}
_MOST_PATHS = 64
_AGAIN = """
import os, runpy, sys
sys.path[:] = sys.argv.pop(1).split(os.pathsep)
runpy.run_module("guard", run_name="__main__", alter_sys=True)
"""

_closed: dict[str, tuple[int, int] | None] = {}
_paths: dict[tuple[str | None, str | None, str, int], str] = {}


def close_folders(*folders: str | os.PathLike[str]) -> None:
    """Find no program in these folders from now on, because they belong to a repository that guard works with."""
    for folder in folders:
        real = os.path.realpath(folder)
        if real != os.sep and real not in _closed:
            _closed[real] = _identity(real)


class ProgramSearch:
    """The result of a search: the absolute path of the program, or of the first one that guard does not run."""

    def __init__(self, name: str, program: str | None, refused: str = "", where: str = "") -> None:
        self.name = name
        self.program = program
        self.refused = refused
        self._where = where

    @property
    def problem(self) -> str:
        """Say why there is no program to run."""
        if not self.refused:
            return f"{self.name} is not installed"
        return f"{self.name} is only {self._where} ({self.refused}): guard does not run it"

    @property
    def hint(self) -> str | None:
        """Say what to do about a program that guard does not run; None if there is none at all."""
        if not self.refused:
            return None
        return f"install {self.name} elsewhere on PATH, or name it by its path in your own settings"


def search_program(
    name: str, environ: "Mapping[str, str]", folder: str | os.PathLike[str] = os.curdir
) -> ProgramSearch:
    """Search a program by its name, outside of the places that an agent can write.

    A path that the user wrote is taken as it is, from `folder` on.
    """
    if os.sep in name:
        path = os.path.join(folder, name)
        return ProgramSearch(name, path if is_program(path) else None)
    places = _ClosedPlaces(environ)
    refused = where = ""
    for entry in _entries(environ):
        path = os.path.join(entry, name)
        if not is_program(path):
            continue
        problem = places.entry_problem(entry) or places.problem(path)
        if problem is None:
            return ProgramSearch(name, path)
        if not refused:
            refused, where = os.path.abspath(path), problem
    return ProgramSearch(name, None, refused, where)


def find_program(
    name: str, environ: "Mapping[str, str]", folder: str | os.PathLike[str] = os.curdir
) -> str | None:
    """Return the path of a program that `search_program` finds, for callers that need no reason."""
    return search_program(name, environ, folder).program


def planted_place(path: str, environ: "Mapping[str, str]") -> str | None:
    """Say in which place of a repository a program lies that an agent may have planted there; None if it lies elsewhere."""
    return _ClosedPlaces(environ).entry_problem(os.path.dirname(path))


def find_as_shell(name: str, environ: "Mapping[str, str]") -> str | None:
    """Find a program as the user's shell would, inside the repository too: for commands that are the user's to choose."""
    if os.sep in name:
        return name if is_program(name) else None
    paths = (os.path.join(entry, name) for entry in _entries(environ))
    return next((path for path in paths if is_program(path)), None)


def is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def own_environment(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return the environment for a program that guard starts for itself.

    It lacks the variables that make programs load or run something from the repository, and its search path leads to no
    program there, so that what the program starts in turn is looked up as safely.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _CHECKED and not name.startswith("BASH_FUNC_")
    }
    for name in _CHECKED & environ.keys() - _CODE:
        cleaned = _ClosedPlaces(environ).clean(name, environ[name])
        if cleaned is not None:
            kept[name] = cleaned
    return {**kept, "PATH": _safe_path(environ)}


def _safe_path(environ: "Mapping[str, str]") -> str:
    # Kept, because git is started often and every folder above each entry is looked at.
    key = (environ.get("PATH"), environ.get("HOME"), _current_folder(), len(_closed))
    if key not in _paths:
        if len(_paths) >= _MOST_PATHS:
            _paths.clear()
        places = _ClosedPlaces(environ)
        _paths[key] = os.pathsep.join(filter(places.is_safe_for_others, _entries(environ)))
    return _paths[key]


def own_python(*words: str) -> list[str]:
    """Return the command that runs this Python with these words, and imports nothing from the current folder."""
    return [sys.executable, "-P", *words]


def own_guard(*words: str) -> list[str]:
    """Return the command that runs this guard again with these words, loaded from where this one is.

    The variables for Python that it is given are for the programs that it starts: in another folder they may lead into it.
    """
    return own_python("-E", "-c", _AGAIN, os.pathsep.join(sys.path), *words)


def installed_inside(environ: "Mapping[str, str]") -> str | None:
    """Return where guard itself is installed, if that is inside the repository; None if it is elsewhere."""
    places = _ClosedPlaces(environ)
    own = (sys.prefix, os.path.dirname(os.path.abspath(__file__)))
    return next((path for path in own if places.problem(path) == _INSIDE), None)


_INSIDE = "inside the repository"


class _ClosedPlaces:
    """The places in which guard finds no program, as they are now."""

    def __init__(self, environ: "Mapping[str, str]") -> None:
        self._home = os.path.realpath(environ.get("HOME") or os.sep)
        self._current, self._where = self._find_current()
        # By identity too: a file system may take two spellings for the same name.
        self._identities = {identity: folder for folder, identity in _closed.items()}

    def _find_current(self) -> tuple[str, str]:
        """Find the work tree around the current folder; without one the folder itself, unless it holds the user's tools."""
        here = os.path.realpath(_current_folder())
        for above in _upwards(here):
            if os.path.lexists(os.path.join(above, ".git")):
                return above, _INSIDE
        tools = (self._home, sys.prefix, *_SYSTEM_FOLDERS)
        if here == os.sep or any(here in _upwards(os.path.realpath(path)) for path in tools):
            return "", ""
        return here, "inside the current folder"

    def problem(self, path: str) -> str | None:
        """Say in which closed place a file or folder really lies; None if in none."""
        for above in _upwards(os.path.realpath(path)):
            if above in _closed or self._is_closed_by_another_name(above):
                return _INSIDE
            if above == self._current:
                return self._where
        return None

    def _is_closed_by_another_name(self, folder: str) -> bool:
        identity = _identity(folder)
        known = self._identities.get(identity)
        # A folder that is gone leaves its identity to a new one.
        return identity is not None and known is not None and _identity(known) == identity

    def entry_problem(self, entry: str) -> str | None:
        """Say why no program is taken from this entry of the search path; None if one may be."""
        if not os.path.isabs(entry):
            return "in a relative entry of PATH"
        problem = self.problem(entry)
        if problem is not None:
            return problem
        for above in _upwards(os.path.realpath(entry)):
            if os.path.lexists(os.path.join(above, ".git")) and not self._holds_tools(above):
                return "inside another repository"
        return None

    def is_safe_for_others(self, entry: str) -> bool:
        """Tell whether other programs may search this entry: they do not look where a link in it leads."""
        if self.entry_problem(entry) is not None:
            return False
        paths = (os.path.join(entry, name) for name in _STARTED_BY_OTHERS)
        return all(self.problem(path) is None for path in paths if os.path.islink(path))

    def _holds_tools(self, root: str) -> bool:
        # A home folder under version control, and installers that are git clones themselves: nvm, pyenv, asdf, Homebrew.
        if root in (self._home, _HOMEBREW):
            return True
        parent, name = os.path.split(root)
        if parent == self._home:
            return name.startswith(".")
        return parent in (os.path.join(self._home, folder) for folder in _TOOL_FOLDERS)

    def clean(self, name: str, value: str) -> str | None:
        """Return the value of a variable without what leads into the repository; None to drop the variable."""
        if name == "NODE_OPTIONS":
            return value if all(map(self._may_load, _node_files(value))) else None
        if name in _LISTS:
            parts = value.split(os.pathsep)
            return os.pathsep.join(part for part in parts if self._may_load(part, name)) or None
        return value if self._may_load(value, name) else None

    def _may_load(self, place: str, variable: str = "") -> bool:
        if variable in _NAMES and place and os.sep not in place:
            return True
        # LD_PRELOAD takes spaces between its entries as well.
        parts = place.split() if variable in _NAMES else [place]
        return all(os.path.isabs(part) and self.problem(part) is None for part in parts)


def _node_files(options: str) -> list[str]:
    words = options.replace("=", " ").replace('"', " ").split()
    found = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in _NODE_FILES:
            found.append(following.removeprefix("file://"))
        elif word.startswith("-r"):
            found.append(word[2:])
    return found


def _entries(environ: "Mapping[str, str]") -> list[str]:
    # An empty entry is the current folder.
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    return [entry or os.curdir for entry in entries]


def _current_folder() -> str:
    # A folder that is gone holds no program.
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _upwards(folder: str) -> "Iterator[str]":
    """The folder and those above it, without the root folder."""
    while folder not in (os.sep, ""):
        yield folder
        folder = os.path.dirname(folder)
