"""A machine, told from others and from its own earlier boots."""

from guard.core.base.fields import Frozen, Line


class Host(Frozen):
    """A machine as its processes see it: names are changed and shared, so each part is compared for itself."""

    name: Line
    machine: Line | None
    """What stays the same over restarts, as a digest; None where nothing tells."""
    boot_id: Line | None
    """What is new at every restart."""
    pid_namespace: Line | None
    """The numbers of processes mean something only inside one of these."""
