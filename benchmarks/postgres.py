"""The store on a PostgreSQL server of the benchmark's own: many writers, kills, restarts, many agents."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from random import Random

from benchmarks.history import MOMENT, spawned, updated
from benchmarks.measure import Row, at_most, none_of, paired
from guard.agents import registry
from guard.core.agents.events import AgentUpdated
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.errors import StoreUnavailable
from guard.store.dsn import parse_dsn
from guard.store.postgres.store import PostgresStore
from tests.support.postgres import PostgresServer, find_programs, postgres_server

_ROUNDS, _BATCH = 100, 5000


def rows(
    processes: int = 32,
    updates: int = 200,
    kills: int = 300,
    restarts: int = 20,
    agents: int = 100_000,
    seed: int = 1,
) -> Iterator[Row]:
    programs = find_programs()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed (apt-get install postgresql)")
    with postgres_server(programs, durable=True) as server:
        yield _many_writers(server.new_database("writers"), processes, updates)
        yield _kills_and_restarts(server, kills, restarts, Random(seed))
        yield _many_agents(server, agents)


def open_store(place: str) -> PostgresStore:
    return PostgresStore(parse_dsn(place), "w", lock_timeout_seconds=300)


def _many_writers(place: str, processes: int, updates: int) -> Row:
    _begin(place, processes)
    begun = time.monotonic()
    writers = [Writer(place, number, updates) for number in range(processes)]
    told = [line for writer in writers for line in writer.end()]
    took = time.monotonic() - begun
    lost = _count_lost(place, told) + abs(len(told) - processes * updates)
    what = f"{processes} processes, {updates} updates each: lost, doubled or out of order"
    return none_of(what, lost, f"{len(told)} updates in {took:.0f} s, {len(told) / took:.0f}/s")


def _kills_and_restarts(server: PostgresServer, kills: int, restarts: int, chance: Random) -> Row:
    """Kill writers at any moment, and the server with all its connections now and then."""
    place, told, number = server.new_database("kills"), list[str](), count(4)
    _begin(place, kills + 4)
    writers = [Writer(place, each) for each in range(4)]
    due = set(chance.sample(range(kills), restarts))
    begun = time.monotonic()
    for kill in range(kills):
        victim = writers.pop(chance.randrange(len(writers)))
        victim.await_first()
        time.sleep(chance.uniform(0, 0.05))
        if kill in due:
            server.stop("immediate")
            server.start()
        told += victim.kill()
        writers.append(Writer(place, next(number)))
    told += [line for writer in writers for line in writer.kill()]
    took = time.monotonic() - begun
    what = f"{kills} kills of writers, {restarts} immediate restarts of the server: acknowledged and lost"
    detail = f"{len(told)} acknowledged in {took:.0f} s, the chain and all views as the log says"
    return none_of(what, _count_lost(place, told), detail)


def _begin(place: str, agents: int) -> None:
    with open_store(place).change() as change:
        change.append(*(spawned(number, 8) for number in range(agents)))


class Writer:
    """A process that records updates of one agent, and says which were acknowledged."""

    def __init__(self, place: str, number: int, updates: int = 1_000_000) -> None:
        reading, writing = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            code = 1
            try:
                os.close(reading)
                _write(place, number, updates, writing)
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        self._said = os.fdopen(reading)
        self._first = ""

    def await_first(self) -> None:
        self._first = self._said.readline()

    def kill(self) -> list[str]:
        os.kill(self._pid, signal.SIGKILL)
        return self.end()

    def end(self) -> list[str]:
        """Wait for the end, and return what was acknowledged."""
        with self._said:
            said = self._first + self._said.read()
        os.waitpid(self._pid, 0)
        return said.split()


def _write(place: str, number: int, updates: int, told: int) -> None:
    """Record updates under ids of their own, each until it is acknowledged."""
    store, name = open_store(place), f"{number}-{os.getpid()}"
    for step in range(updates):
        said = f"{name}-{step}"
        while not _is_recorded(store, number, said):
            pass
        os.write(told, f"{said}\n".encode())


def _is_recorded(store: PostgresStore, number: int, said: str) -> bool:
    try:
        with store.change() as change:
            change.expect_event(said)
            agent = registry.require_agent(change, f"task-{number % 8}", f"agent-{number}")
            if change.find_event(said) is None:
                stamp = registry.stamp_of(agent, MOMENT)
                stamp["id"] = said
                change.append(AgentUpdated(**stamp, status="working", message=said))
    except StoreUnavailable:
        return False
    return True


def _count_lost(place: str, told: list[str]) -> int:
    """Count what was acknowledged and is not there once, gaps in the sequence, and what verify finds."""
    store = open_store(place)
    seqs, found = [], Counter[str]()
    for entry in store.entries():
        seqs.append(entry.position.seq)
        if isinstance(entry.event, AgentUpdated):
            found[entry.event.message] += 1
    gaps = sum(seq != own for own, seq in enumerate(seqs, 1))
    wrong = sum(found[each] != 1 for each in told) + sum(times > 1 for times in found.values())
    report = store.verify()
    overall = store.view(GLOBAL_REGISTRY)
    counted = sum(agent.updates for agent in overall.agents) if overall is not None else 0
    return gaps + wrong + len(report.findings) + abs(counted - sum(found.values()))


def _many_agents(server: PostgresServer, agents: int) -> Row:
    """One update where there are 100 agents and where there are many, half of them at work."""
    stores = []
    for number in (100, agents):
        place = server.new_database(f"agents_{number}")
        store = open_store(place)
        for first in range(0, number, _BATCH):
            numbers = range(first, min(number, first + _BATCH))
            with store.change() as change:
                change.append(*(spawned(each, 200) for each in numbers))
                ended = (updated(each, each, 200, ends=True) for each in numbers if each % 2)
                change.append(*ended)
        server.query(f"agents_{number}", "VACUUM ANALYZE")
        stores.append(_update(place, number))
    few, many = paired(_ROUNDS, *stores)
    detail = f"{many * 1e3:.1f} ms with {agents:,}, {few * 1e3:.1f} ms with 100"
    return at_most(
        f"one update on PostgreSQL, {agents:,} agents beside 100", 1.2, many / few, detail
    )


def _update(place: str, agents: int) -> Callable[[], object]:
    store, steps = open_store(place), count()

    def update() -> object:
        number = next(steps) * 7919 % (agents // 2) * 2  # The even ones are at work.
        work = registry.AgentUpdate(f"task-{number % 200}", f"agent-{number}", "working")
        return registry.update(store, MOMENT, work)

    return update
