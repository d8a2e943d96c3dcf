"""Sessions that something outlives: helpers, a team, a ghost of one, the agent itself."""

from math import inf

from benchmarks.simulation import sessions
from benchmarks.simulation.minds import DONE, STALL, evasive
from benchmarks.simulation.world import Actor, World

HOURS = 3600.0


def helper_commits(make: sessions.Making) -> sessions.Session:
    at = make.seconds(3, 6500)
    make.alive(Actor("process", "worker", seen_until=at + 2, works_until=at + 2))
    make.later_commits(at)
    return make.session(
        DONE, sessions.always(sessions.WAITING), "ok" if make.chance(0.8) else "crash"
    )


def helper_is_silent(make: sessions.Making) -> sessions.Session:
    """It waits for something far away: no CPU, no input or output, for minutes or an hour."""
    at = make.seconds(200, 6500)
    every = make.random.choice((200.0, 1000.0, 7000.0))
    ends = at + 2 if make.chance(0.7) else at
    make.alive(Actor("process", "watcher", seen_until=ends, works_until=ends, every=every))
    if make.chance(0.5):
        make.leaves()
    if ends == at:
        return make.session(_after_helper(make), _waits_until(at))
    make.later_commits(at)
    return make.session(sessions.truth("complete", "waiting"), sessions.always(sessions.WAITING))


def _after_helper(make: sessions.Making) -> sessions.Truth:
    """What it comes to if the helper ends without a commit."""
    left = any(not one.users for one in make.world.work_tree.values())
    if left:
        return sessions.truth("complete", "waiting", must_be_rescued=True)
    return sessions.truth("timeout", "waiting", stalled=True)


def _waits_until(at: float) -> sessions.Mind:
    """An honest session that waits for its helper, and then does what it can say of itself."""

    def mind(world: World, _number: int) -> sessions.Reply:
        left = any(not one.users for one in world.work_tree.values())
        return (
            sessions.WAITING if world.now < at else sessions.COMPLETE if left else sessions.WORKING
        )

    return mind


def helper_takes_hours(make: sessions.Making) -> sessions.Session:
    at = make.seconds(2.1 * HOURS, 7 * HOURS)
    make.alive(Actor("process", "worker", seen_until=at + 2, works_until=at + 2))
    make.later_commits(at)
    return make.session(sessions.truth("waiting", "complete"), sessions.always(sessions.WAITING))


def helper_leaves_files(make: sessions.Making) -> sessions.Session:
    at = make.seconds(3, 6500)
    make.alive(Actor("process", "worker", seen_until=at + 2, works_until=at + 2))
    make.later_leaves(at)
    return make.session(sessions.truth("complete", must_be_rescued=True), _waits_until(at))


def helper_fails(make: sessions.Making) -> sessions.Session:
    at = make.seconds(3, 6500)
    make.alive(Actor("process", "worker", seen_until=at, works_until=at))
    return make.session(STALL, evasive(make))


def team(make: sessions.Making) -> sessions.Session:
    """The lead has committed its part, or not; its team commits more."""
    make.world.team = "builders"
    if make.chance(0.6):
        make.commits()
    last = 0.0
    for number in range(make.random.randint(1, 3)):
        at = make.seconds(5, 3 * HOURS)
        every = make.random.choice((5.0, 60.0, 600.0))
        make.alive(
            Actor("member", f"member-{number}", seen_until=at + 2, works_until=at + 2, every=every)
        )
        make.later_commits(at)
        last = max(last, at)
    right = (
        sessions.truth("complete") if last < 1.9 * HOURS else sessions.truth("complete", "waiting")
    )
    return make.session(right, sessions.always(sessions.WAITING))


def hung_helper(make: sessions.Making) -> sessions.Session:
    since = -make.seconds(1, 2 * HOURS)
    make.world.team = "builders"
    make.alive(Actor("member", "sleeper", works_until=since, last=since))
    return make.session(STALL, sessions.always(sessions.WAITING))


def ghost(make: sessions.Making) -> sessions.Session:
    """The team's accounting has a member that died without a word; its lease runs out, or is renewed for ever."""
    since = -make.seconds(1, 600)
    endless = make.chance(0.2)
    lease = inf if endless else make.seconds(30, 3000)
    make.world.team = "builders"
    make.alive(Actor("member", "ghost", seen_until=lease, works_until=since, last=since))
    match make.random.randrange(2 if endless else 3):
        case 0:
            make.commits()
            return make.session(DONE, sessions.always(sessions.WAITING))
        case 1:
            return make.session(STALL, sessions.always(sessions.WAITING))
        case _:
            make.leaves()
            return make.session(
                sessions.truth("complete", must_be_rescued=True), sessions.always(sessions.COMPLETE)
            )


def still_running(make: sessions.Making) -> sessions.Session:
    """The agent itself goes on; it may be silent for long."""
    at = make.seconds(10, 4 * HOURS)
    every = make.random.choice((5.0, 5.0, 400.0, 3000.0))
    make.alive(Actor("agent", "claude", seen_until=at + 2, works_until=at + 2, every=every))
    make.later_commits(at)
    if make.chance(0.5):
        make.leaves()
    mind = sessions.always(
        make.random.choice((sessions.WORKING, sessions.WAITING, sessions.COMPLETE))
    )
    return make.session(sessions.truth("working", "complete"), mind, open_tasks=2)
