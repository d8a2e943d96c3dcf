"""The settings of landing."""

import json
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from guard.core.base.fields import USERS, Section
from guard.core.prove.settings import Globs


class RegeneratedFile(Section):
    """One file that a command makes, such as a lock file."""

    file: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """The path from the root of the work tree."""
    command: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    """Run by `sh -c` in a clean checkout of the merged files."""


def _read_tables(value: Any) -> Any:
    # A file has tables, a variable has them as JSON.
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return tuple(value) if isinstance(value, list) else value


_Regenerated = Annotated[tuple[RegeneratedFile, ...], BeforeValidator(_read_tables)]


class LandingSettings(Section):
    """How tasks that passed their audit land on the target branch."""

    mode: Annotated[Literal["squash", "merge"], Field(json_schema_extra=USERS)] = "squash"
    """Whether a task lands as one commit, or as a merge that keeps its commits."""
    union: Annotated[Globs, Field(max_length=200, json_schema_extra=USERS)] = ("CHANGELOG.md",)
    """Files in which conflicting lines are all kept, as globs."""
    regenerate: Annotated[_Regenerated, Field(max_length=50, json_schema_extra=USERS)] = ()
    """Files that a command makes anew instead of a merge, as tables `[[landing.regenerate]]` with `file` and `command`."""
    regenerate_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=USERS)] = 300
    """How long one of these commands may take."""
    attempts: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 2
    """How often a task that cannot land is worked on again before a person is asked."""
