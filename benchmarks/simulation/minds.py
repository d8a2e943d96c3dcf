"""What sessions say of themselves that have nothing to show."""

from benchmarks.simulation.answers import Fails, Told
from benchmarks.simulation.outputs import Ending
from benchmarks.simulation.sessions import (
    COMPLETE,
    WAITING,
    WORKING,
    Making,
    Mind,
    Reply,
    Session,
    always,
    truth,
)

STALL = truth("timeout", stalled=True)
DONE = truth("complete")
TRANSIENT: tuple[Fails, ...] = ("timeout", "crashed")


def evasive(make: Making) -> Mind:
    """What an agent says that does nothing any more: anything but that it is done."""
    told: tuple[Reply, ...] = (WORKING, WAITING, "noise", "timeout", "crashed")
    replies = [make.random.choice(told) for _ in range(5)]
    return always(*replies) if make.chance(0.5) else always(make.random.choice(told[:3]))


def lie(make: Making) -> tuple[Mind, int | None, Ending]:
    """A claim to be complete that something contradicts: an open box, tasks of its own, or how it ended."""
    match make.random.randrange(4):
        case 0:
            return always(Told("complete", commits=3)), make.random.randint(1, 9), "ok"
        case 1:
            return always(Told("complete", pending=("1.2",))), None, "ok"
        case 2 if make.supervised:
            return always(COMPLETE), None, "crash"
        case _:
            return always("noise", Told("complete", helpers=True)), None, "ok"


def unproductive(make: Making) -> Session:
    """A session of which nothing came, however it puts that."""
    if make.chance(0.5):
        return make.session(STALL, evasive(make))
    mind, tasks, ending = lie(make)
    return make.session(STALL, mind, ending, open_tasks=tasks)
