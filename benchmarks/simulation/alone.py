"""Sessions in which only the agent did anything, or nothing."""

from benchmarks.simulation.answers import Fails
from benchmarks.simulation.minds import DONE, STALL, TRANSIENT, evasive, lie, unproductive
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
from benchmarks.simulation.world import Actor

_BAD_ENDINGS: tuple[Ending, ...] = (
    "limited", "transient", "auth", "question", "denied", "turns", "context", "crash",
)  # fmt: skip


def committed(make: Making) -> Session:
    match make.random.randrange(5):
        case 0:
            make.repository.switch("refs/heads/feature")
            make.commits()
        case 1:
            make.repository.switch("refs/heads/feature")
            make.commits()
            make.repository.switch("refs/heads/main")
        case 2:
            make.repository.detach()
            make.commits()
        case _:
            make.commits()
    if make.chance(0.2):
        make.leaves()
    ending: Ending = "ok" if make.chance(0.7) else make.random.choice(_BAD_ENDINGS)
    return make.session(DONE, evasive(make), ending)


def forgot(make: Making) -> Session:
    make.leaves()
    if make.chance(0.1):
        make.leaves(1, secrets=True)
    ending: Ending = "ok" if make.chance(0.8) else "crash"
    real = truth("complete", must_be_rescued=True)
    slow: list[Reply] = [make.random.choice(TRANSIENT) for _ in range(make.random.randrange(4))]
    if make.chance(0.4):
        slow.insert(make.random.randrange(len(slow) + 1), "noise")
    return make.session(real, always(*slow, COMPLETE), ending)


def forgot_in_mid_operation(make: Making) -> Session:
    """Not on the branch of the beginning, or in the middle of a merge: no commit may be made there."""
    if make.chance(0.5):
        make.world.operation = make.random.choice(("merge", "rebase"))
    else:
        make.repository.detach()
    make.leaves()
    return make.session(truth("timeout", must_be_rescued=True), always(COMPLETE))


def forgot_and_cannot_tell(make: Making) -> Session:
    make.leaves()
    real = truth("timeout", must_be_rescued=True)
    if make.chance(0.5):
        return make.session(real, always(WORKING), can_ask=False)
    return make.session(real, always("noise", *TRANSIENT, "noise"))


def forgot_and_cannot_be_asked(make: Making) -> Session:
    make.leaves()
    error: Fails = make.random.choice(("no_session", "auth", "no_cli"))
    return make.session(truth("error", must_be_rescued=True, error=error), always(error))


def halfway(make: Making) -> Session:
    """Work goes on from session to session, and none of them commits."""
    make.leaves()
    return make.session(truth("timeout", must_be_rescued=True), always(WORKING))


def stalled(make: Making) -> Session:
    can_ask = make.chance(0.85)
    if make.chance(0.1):
        make.leaves(1, secrets=True)
    return make.session(STALL, evasive(make), can_ask=can_ask)


def stalled_and_cannot_be_asked(make: Making) -> Session:
    error: Fails = make.random.choice(("no_session", "auth", "no_cli"))
    return make.session(truth("error", stalled=True, error=error), always(error))


def crashed(make: Making) -> Session:
    real = truth("timeout", stalled=True, error="crash")
    return make.session(real, evasive(make), "crash")


def crashed_in_mid_work(make: Making) -> Session:
    make.leaves()
    real = truth("timeout", must_be_rescued=True, error="crash")
    return make.session(real, always(make.random.choice((WORKING, WAITING, "noise"))), "crash")


def lies(make: Making) -> Session:
    mind, tasks, ending = lie(make)
    return make.session(STALL, mind, ending, open_tasks=tasks)


def lies_unprovably(make: Making) -> Session:
    real = truth("timeout", stalled=True, unprovable=True)
    return make.session(real, always(COMPLETE), open_tasks=None)


def nothing_to_do(make: Making) -> Session:
    real = truth("complete", nothing_to_do=True)
    return make.session(real, always(COMPLETE), open_tasks=make.random.choice((None, 0)))


def only_the_users_files(make: Making) -> Session:
    make.users_files()
    return unproductive(make)


def late_commit(make: Making) -> Session:
    """A commit lands while the check goes on: by something that guard cannot see, or in a hook that shows no sign of work."""
    at = make.seconds(1, 100)
    if make.chance(0.5):
        make.alive(Actor("process", "git commit", seen_until=at + 1, works_until=at + 1, every=1e6))
    else:
        at = at / 100
    make.later_commits(at)
    return make.session(DONE, evasive(make), "ok" if make.chance(0.7) else "crash")


def hides_its_work(make: Making) -> Session:
    """What it wrote is kept from git by `info/exclude`, a `.gitignore` of `*` or the like, and it may say that it is done."""
    make.hides()
    if make.chance(0.4):
        return make.session(truth("complete", must_be_rescued=True), always(COMPLETE))
    return make.session(truth("timeout", must_be_rescued=True), always(WORKING))
