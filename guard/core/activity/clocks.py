"""The clocks of one machine as they were read, with only those readings kept that tell something."""

from hashlib import sha256
from typing import Any, Literal

from pydantic import Field

from guard.core.activity.gaps import MachineClock, gaps
from guard.core.base.fields import Line
from guard.core.events.activity import ClocksRead
from guard.core.log.view import Fold, ViewDocument, ViewKind

MOST_KEPT = 200


class MachineClocks(ViewDocument):
    """When a machine was awake, as far as guard looked."""

    schema_: Literal["guard/machine-clocks/1"] = Field("guard/machine-clocks/1", alias="schema")
    machine: Line
    readings: tuple[MachineClock, ...]
    """The oldest first; where nothing happened between three, the one in the middle is dropped."""

    def key(self) -> str:
        return machine_key(self.machine)


class MachineClocksFold(Fold[MachineClocks]):
    document_class = MachineClocks

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._machine = ""
        self._readings: tuple[MachineClock, ...] = ()

    def restore(self, document: MachineClocks) -> None:
        self.reached = document.position()
        self._machine, self._readings = document.machine, document.readings

    def apply(self, event: ClocksRead) -> None:
        self._machine = event.machine
        reading = MachineClock.model_construct(
            at=event.at,
            boot_seconds=event.boot_seconds,
            awake_seconds=event.awake_seconds,
            boot_id=event.boot_id,
        )
        kept = self._readings
        if len(kept) > 1 and _is_plain((*kept[-2:], reading)):
            kept = kept[:-1]
        self._readings = (*kept, reading)[-MOST_KEPT:]

    def contents(self) -> dict[str, Any]:
        return {"machine": self._machine, "readings": self._readings}


def _is_plain(three: tuple[MachineClock, ...]) -> bool:
    """Whether the machine was awake all the time, by clocks that were not set."""
    times = [one.at for one in three]
    return len({one.boot_id for one in three}) == 1 and times == sorted(times) and not gaps(three)


def machine_key(machine: str) -> str:
    """A name of any kind as a part of a path."""
    return sha256(machine.encode()).hexdigest()[:32]


MACHINE_CLOCKS: ViewKind[MachineClocks, MachineClocksFold] = ViewKind(
    document=MachineClocks,
    fold=MachineClocksFold,
    events=(ClocksRead,),
    key=lambda event: machine_key(event.machine),
    folder="machines.d/",
    file="/clocks.json",
    needles=lambda _key: (b'"type":"clocks_read"',),
)
