"""Sessions that ended for a reason that is not their own: limits, outages, questions, helpers that died with them."""

from benchmarks.simulation.outputs import Ending
from benchmarks.simulation.sessions import (
    COMPLETE,
    WAITING,
    WORKING,
    Making,
    Reply,
    Session,
    always,
    truth,
)


def used_up(make: Making) -> Session:
    """The turns, the money or the room that the session had."""
    if make.chance(0.5):
        make.leaves()
    ending: Ending = make.random.choice(("turns", "context"))
    return make.session(truth("working"), always(WORKING), ending)


def limited(make: Making) -> Session:
    if make.chance(0.4):
        make.leaves()
    return make.session(truth("limited"), always("limited"), "limited")


def outage(make: Making) -> Session:
    """The service went away during the session, or after it."""
    if make.chance(0.3):
        make.leaves()
    if make.chance(0.6):
        return make.session(truth("limited"), always("overloaded"), "transient")
    replies: list[Reply] = [
        make.random.choice(("overloaded", "timeout", "crashed")) for _ in range(4)
    ]
    replies.insert(make.random.randrange(5), "overloaded")
    if make.chance(0.3):
        replies = [WORKING, *replies[:4]] if "overloaded" in replies[:4] else replies
    return make.session(truth("limited"), always(*replies))


def killed_with_helpers(make: Making) -> Session:
    if make.chance(0.4):
        make.commits()
    if make.chance(0.5):
        make.leaves()
    mind = always(make.random.choice((COMPLETE, WAITING)))
    return make.session(truth("interrupted", killed=True), mind, "killed")


def denied(make: Making) -> Session:
    return make.session(truth("blocked", denied=True), always(WORKING), "denied")


def asks_a_person(make: Making) -> Session:
    if make.chance(0.3):
        make.leaves()
    ending: Ending = make.random.choice(("question", "auth"))
    return make.session(truth("blocked"), always(WAITING), ending)
