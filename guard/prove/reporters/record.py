"""Write JSON lines about tests, one file for each process, and tell the kinds of faults apart."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
_MOST_TEXT = 4000
_MOST_LINES = 20
_MOST_MODULES = 20
_SIGNATURE = re.compile(
    r"unexpected keyword argument|required (?:positional|keyword-only) argument|positional arguments? but"
    r"|takes no (?:keyword )?arguments|multiple values for (?:keyword )?argument|takes (?:at most|exactly|from)"
    r"|abstract class .* without an implementation"
)
_GONE = re.compile(r"has no attribute|does not have the attribute")
_OF_A_VALUE = re.compile(
    r"'(?:NoneType|bool|int|float|complex|str|bytes|list|tuple|dict|set|frozenset|function|method|generator|coroutine)' object"
)
_TEST_FOLDERS = {"tests", "test", "testing", "spec", "specs", "__tests__"}
_TEST_FILE = re.compile(r"test_.*|.*_tests?\.py|tests?\.py|conftest\.py")
_PACKAGES = ("site-packages", "dist-packages", "node_modules")


def read_settings() -> dict[str, Any]:
    with open(os.path.join(HERE, "settings.json"), encoding="utf-8") as file:
        settings: dict[str, Any] = json.load(file)
    # A test runner that a test starts is the project's own affair.
    settings["given"] = {name: os.environ.get(name) for name in settings["environ"]}
    set_variables(settings["environ"])
    return settings


def set_variables(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class Record:
    """The file of this process."""

    def __init__(self, folder: str) -> None:
        name = f"{os.getpid()}-{os.urandom(8).hex()}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._output = os.open(os.path.join(folder, name), flags, 0o600)

    def write(self, kind: str, **fields: object) -> None:
        line = json.dumps({"kind": kind, **fields}) + "\n"
        os.write(self._output, line.encode("ascii"))


def load_functions(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        # Their assertions hold under `python -O`, too.
        code = compile(file.read(), path, "exec", optimize=0)
    functions: dict[str, Any] = {"__name__": os.path.basename(path)[:-3]}
    exec(code, functions)  # noqa: S102
    return functions


def last_lines(text: object) -> str:
    if text is None:
        return ""
    return "\n".join(str(text)[-_MOST_TEXT:].splitlines()[-_MOST_LINES:])


def fault(error: BaseException, folder: str, tests: set[str]) -> str:
    """Say why an exception ended a test: `cannot_run` if the test uses what the code does not have.

    What the code itself raised, though it was there to be called, is an `error`. `tests` are files that are known as tests.
    """
    if isinstance(error, AssertionError):
        return "assertion"
    text = str(error)
    if type(error).__name__ == "FixtureLookupError":
        return "cannot_run"
    owner = _owner(error, folder)
    is_of_test = owner is None or _is_test(owner.f_code.co_filename, folder, tests)
    if isinstance(error, ImportError):
        is_gone = is_of_test or (owner is not None and owner.f_code.co_name == "<module>")
    elif isinstance(error, NameError):
        is_gone = is_of_test and not isinstance(error, UnboundLocalError)
    elif isinstance(error, TypeError):
        is_gone = _SIGNATURE.search(text) is not None and (is_of_test or _hands_on(owner))
    elif isinstance(error, AttributeError):
        is_gone = is_of_test and _GONE.search(text) is not None and not _OF_A_VALUE.search(text)
    else:
        is_gone = False
    return "cannot_run" if is_gone else "error"


def _owner(error: BaseException, folder: str) -> types.FrameType | None:
    """Return the innermost frame in the checkout; what libraries do below it, it asked them to."""
    found, trace = None, error.__traceback__
    while trace is not None:
        path = os.path.abspath(trace.tb_frame.f_code.co_filename)
        if path.startswith(folder + os.sep) and not _is_installed(path, folder):
            found = trace.tb_frame
        trace = trace.tb_next
    return found


def _is_test(path: str, folder: str, tests: set[str]) -> bool:
    path = os.path.abspath(path)
    names = os.path.relpath(path, folder).split(os.sep)
    if path in tests or _TEST_FILE.fullmatch(names[-1]):
        return True
    return not _TEST_FOLDERS.isdisjoint(names[:-1])


def _hands_on(frame: types.FrameType | None) -> bool:
    """Say whether a frame takes any arguments, as a decorator's wrapper does to hand them on."""
    flags = frame.f_code.co_flags if frame is not None else 0
    return bool(flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


def foreign_modules(project: str, folder: str) -> list[str]:
    """List the files of modules that were loaded from the project's own work tree, and not from an environment there."""
    found = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if not isinstance(file, str):
            continue
        path = os.path.realpath(file)
        if _is_foreign(path, project, folder) or _is_other_copy(path, folder):
            found.append(os.path.relpath(path, project))
    return sorted(found)[:_MOST_MODULES]


def _is_other_copy(path: str, folder: str) -> bool:
    """Say whether an installed file is another version of one that the checkout has."""
    name = re.split(r"[/\\](?:site|dist)-packages[/\\]", path)[-1]
    if name == path or not os.path.isdir(folder):
        return False
    for top in ("", "src", "lib"):
        own = os.path.join(folder, top, name)
        if os.path.isfile(own):
            with open(own, "rb") as here, open(path, "rb") as there:
                return here.read() != there.read()
    return False


def _is_foreign(path: str, project: str, folder: str) -> bool:
    if not path.startswith(project + os.sep) or path.startswith(folder + os.sep):
        return False
    return not _is_installed(path, project)


def _is_installed(path: str, root: str) -> bool:
    """Say whether a file below `root` belongs to an environment of installed packages."""
    above = os.path.dirname(path)
    while len(above) > len(root):
        if os.path.basename(above) in _PACKAGES:
            return True
        if os.path.exists(os.path.join(above, "pyvenv.cfg")):
            return True
        above = os.path.dirname(above)
    return False


_RUNNERS = ("unittest", "_pytest", "pluggy", "pytest")


def patched_by_code(folder: str, tests: set[str]) -> str:
    """Say where the project's code, and not its tests, has put a function of its own into the test runner; empty if nowhere."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in _RUNNERS:
            continue
        for owner in [module, *_classes(module)]:
            for word, value in list(vars(owner).items()):
                path = _code_file(value)
                if path.startswith(folder + os.sep) and _is_code(path, folder, tests):
                    place = os.path.relpath(path, folder)
                    return f"{place} replaces {getattr(owner, '__qualname__', name)}.{word} of the test runner"
    return ""


def _classes(module: types.ModuleType) -> list[Any]:
    found = [value for value in list(vars(module).values()) if isinstance(value, type)]
    return [value for value in found if value.__module__ == module.__name__]


def _code_file(value: object) -> str:
    # By type: to ask any other object for an attribute may run its code, and its warnings may be errors.
    if isinstance(value, (staticmethod, classmethod, types.MethodType)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    elif isinstance(value, (functools.partial, functools.cached_property)):
        value = value.func
    # Functions that a library generates have no file, but a name such as `<string>`.
    if not isinstance(value, types.FunctionType) or value.__code__.co_filename.startswith("<"):
        return ""
    return os.path.abspath(value.__code__.co_filename)


def _is_code(path: str, folder: str, tests: set[str]) -> bool:
    return not _is_test(path, folder, tests) and not _is_installed(path, folder)
