"""How records written by an older guard become what this one means by them.

A record's version rises only when the meaning of a field changes. For each step write a function from the fields of version
n to those of version n + 1 into `RECORD_STEPS`. Views need none: an older view is folded again from the log.
"""

from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]
Step = Callable[[Fields], Fields]

RECORD_VERSION = 1
RECORD_STEPS: Mapping[int, Step] = {}


def migrate_record(
    fields: Fields, version: int, steps: Mapping[int, Step] = RECORD_STEPS, to: int = RECORD_VERSION
) -> Fields:
    """The same record in the words of version `to`; LookupError where no step leads on."""
    for step in range(version, to):
        fields = steps[step](dict(fields))
    return fields
