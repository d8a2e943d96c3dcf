"""Prepare the process of a guard command: open its closed streams, forget the repository that git names, skip plug-in scans."""

import os
import sys
from types import ModuleType

_REPOSITORY_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)


def prepare() -> None:
    _open_closed_streams()
    for name in _REPOSITORY_VARIABLES:
        # Inside a git hook these name another repository than the one guard is asked about.
        os.environ.pop(name, None)
    _skip_plugins_of_pydantic()


def _skip_plugins_of_pydantic() -> None:
    """Have pydantic look for no plug-ins, which reads the metadata of every installed package.

    Guard's models need none. Pydantic's own variable for this would be inherited by the agents and their programs.
    """
    loader = ModuleType("pydantic.plugin._loader")
    vars(loader)["get_plugins"] = tuple
    sys.modules.setdefault(loader.__name__, loader)


def _open_closed_streams() -> None:
    # Else the next file that is opened becomes a standard stream, and gets what the agent prints.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # Those below are open by now: the lowest free number is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
