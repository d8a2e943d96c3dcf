"""Sessions that ended for a reason that is not their own: limits, outages, questions, helpers that died with them."""

from benchmarks.simulation import sessions
from benchmarks.simulation.outputs import Ending


def used_up(make: sessions.Making) -> sessions.Session:
    """The turns, the money or the room that the session had."""
    if make.chance(0.5):
        make.leaves()
    ending: Ending = make.random.choice(("turns", "context"))
    return make.session(sessions.truth("working"), sessions.always(sessions.WORKING), ending)


def limited(make: sessions.Making) -> sessions.Session:
    if make.chance(0.4):
        make.leaves()
    return make.session(sessions.truth("limited"), sessions.always("limited"), "limited")


def outage(make: sessions.Making) -> sessions.Session:
    """The service went away during the session, or after it."""
    if make.chance(0.3):
        make.leaves()
    if make.chance(0.6):
        return make.session(sessions.truth("limited"), sessions.always("overloaded"), "transient")
    replies: list[sessions.Reply] = [
        make.random.choice(("overloaded", "timeout", "crashed")) for _ in range(4)
    ]
    replies.insert(make.random.randrange(5), "overloaded")
    if make.chance(0.3):
        replies = ["noise", *replies[:4]] if "overloaded" in replies[:4] else replies
    return make.session(sessions.truth("limited"), sessions.always(*replies))


def killed_with_helpers(make: sessions.Making) -> sessions.Session:
    if make.chance(0.4):
        make.commits()
    if make.chance(0.5):
        make.leaves()
    mind = sessions.always(make.random.choice((sessions.COMPLETE, sessions.WAITING)))
    return make.session(sessions.truth("interrupted", killed=True), mind, "killed")


def denied(make: sessions.Making) -> sessions.Session:
    return make.session(
        sessions.truth("blocked", denied=True), sessions.always(sessions.WORKING), "denied"
    )


def asks_a_person(make: sessions.Making) -> sessions.Session:
    if make.chance(0.3):
        make.leaves()
    ending: Ending = make.random.choice(("question", "auth"))
    return make.session(sessions.truth("blocked"), sessions.always(sessions.WAITING), ending)


def asks_with_courtesy(make: sessions.Making) -> sessions.Session:
    """It cannot go on without an answer, and says so in a polite way."""
    if make.chance(0.3):
        make.leaves()
    return make.session(
        sessions.truth("blocked"), sessions.always(sessions.WAITING), "courteous question"
    )


def offers_more(make: sessions.Making) -> sessions.Session:
    """Its work is done, and its last words are an offer, a quoted question or a rhetorical one: no person is needed."""
    if make.chance(0.5):
        make.commits()
        return make.session(sessions.truth("complete"), sessions.always(sessions.COMPLETE), "offer")
    make.leaves()
    real = sessions.truth("complete", must_be_rescued=True)
    return make.session(real, sessions.always(sessions.COMPLETE), "offer")


def hung_cli(make: sessions.Making) -> sessions.Session:
    """The agent's program hung, with work or without, until guard ended it."""
    left = make.chance(0.5)
    if left:
        make.leaves()
    real = sessions.truth("timeout", stalled=not left, must_be_rescued=left, error="hung")
    mind = sessions.always(make.random.choice((sessions.WORKING, "noise", "timeout")))
    return make.session(real, mind, "cut", ended_by_guard="idle")
