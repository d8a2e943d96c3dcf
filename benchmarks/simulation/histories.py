"""Sessions that did something to the history: rewrote it, pulled, or committed what is no work."""

from benchmarks.simulation.minds import DONE, evasive, unproductive
from benchmarks.simulation.sessions import Making, Session


def rewritten_with_work(make: Making) -> Session:
    repository = make.repository
    match make.random.randrange(4):
        case 0:
            repository.amend(make.change(), real=True)
        case 1:
            repository.reset(2)
            make.commits(1)
        case 2:
            repository.rebase(1, repository.upstream(2, below=1))
            make.commits()
        case _:
            repository.forward(repository.upstream(3))
            make.commits()
    return make.session(DONE, evasive(make))


def rewritten_without_work(make: Making) -> Session:
    repository = make.repository
    match make.random.randrange(4):
        case 0:
            repository.amend({})
        case 1:
            repository.rebase(1, repository.upstream(3, below=1))
        case 2:
            repository.reset(2)
        case _:
            repository.commit(make.change())
            repository.reset(1)
    return unproductive(make)


def imported(make: Making) -> Session:
    make.repository.forward(make.repository.upstream(make.random.randint(1, 5)))
    return unproductive(make)


def commits_of_nothing(make: Making) -> Session:
    """Empty commits, or some that cancel each other out."""
    if make.chance(0.5):
        for _ in range(make.random.randint(1, 3)):
            make.repository.commit({})
    else:
        change = make.change()
        make.repository.commit(change)
        make.repository.commit(dict.fromkeys(change))
    return unproductive(make)


def users_work(make: Making) -> Session:
    """The agent commits the user's own earlier work, and nothing else or something of its own."""
    make.users_files()
    make.commits_users_files()
    if make.chance(0.3):
        make.commits()
        return make.session(DONE, evasive(make))
    return unproductive(make)


def foreign(make: Making) -> Session:
    """Commits arrive from elsewhere while the agent works: pushed in, or fetched by address."""
    repository, number = make.repository, make.random.randint(1, 4)
    if make.chance(0.5):
        assert repository.branch is not None
        repository.push_in(number, make.random.choice((repository.branch, "refs/heads/theirs")))
    else:
        repository.forward(repository.upstream(number))
    if make.chance(0.3):
        make.commits()
        return make.session(DONE, evasive(make))
    return unproductive(make)
