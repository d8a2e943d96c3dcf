"""Commands with their state in PostgreSQL: verdicts, machines side by side, and a server that does not answer."""

import json
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from guard.core.base.paths import spell, unspell
from tests.support import Result, commit, git, run, write
from tests.support.postgres import PostgresServer

NOBODY = "postgresql://guard:s3kr%2Ft@127.0.0.1:1/x"


@pytest.fixture
def fleet(repository: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose state is in a database."""
    commit(repository)
    monkeypatch.setenv("GUARD_WORKSPACE", dsn)
    return repository


def on(machine: str, *words: str | Path) -> Result:
    return run(*words, env={"GUARD_MACHINE": machine})


def test_an_iteration_is_judged(fleet: Path, home: Path) -> None:
    code = (
        "import subprocess; open('work.txt', 'w').write('work');"
        "subprocess.run(['git', 'add', 'work.txt']); subprocess.run(['git', 'commit', '-qm', 'Work'])"
    )
    assert run("run", "--", sys.executable, "-c", "pass").code == 10
    done = run("run", "--", sys.executable, "-c", code)
    assert done.code == 0, done.err
    assert run("verify").code == 0
    assert run("rebuild").code == 0
    assert run("show").code == 0
    assert list(home.rglob("events*.jsonl")) == []


def test_agents_of_two_machines_are_in_one_registry(fleet: Path) -> None:
    for machine in ("a", "b"):
        done = on(machine, "agent", "spawn", "--task", "T1", "--agent", f"agent-{machine}")
        assert done.code == 0, done.err
    done = on("a", "agent", "update", "--task", "T1", "--agent", "agent-a", "--status", "working")
    assert done.code == 0, done.err
    listed = json.loads(on("b", "agent", "list", "--format", "json").out)
    assert {agent["agent_id"] for agent in listed["agents"]} == {"agent-a", "agent-b"}


def test_machines_at_the_same_path_share_the_plan_but_no_baseline_and_no_breaker(
    fleet: Path,
) -> None:
    assert on("a", "baseline").code == 0
    assert on("b", "check").code == 4
    assert on("a", "breaker", "trip", "--reason", "test").code == 0
    assert on("b", "breaker", "allow").code == 0
    assert on("a", "breaker", "allow").code == 20
    write(fleet / "plan.md", "# Plan\n\n- [ ] T1: first\n")
    assert on("a", "plan", "load", "plan.md").code == 0
    assert "T1" in on("b", "plan", "next").out


def test_a_trial_is_claimed_by_one_machine_only(fleet: Path) -> None:
    assert on("a", "breaker", "trip", "--reason", "test").code == 0
    later = {"GUARD_NOW": "2099-01-01T00:00:00Z", "GUARD_MACHINE": "a"}
    assert run("breaker", "allow", env=later).code == 0
    assert run("breaker", "allow", env=later).code == 20


def test_a_log_moves_between_files_and_the_database(
    fleet: Path, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_WORKSPACE", str(tmp_path / "files"))
    assert run("breaker", "trip", "--reason", "é").code == 0
    exported = run("log", "--export", "-").out
    monkeypatch.setenv("GUARD_WORKSPACE", dsn)
    assert run("log", "--import", "-", stdin=exported).code == 0
    assert run("log", "--export", "-").out == exported
    assert run("verify").code == 0
    assert run("breaker", "allow").code == 20
    assert run("log", "--import", "-", stdin=exported).code == 1


def test_workspaces_of_a_database_are_named(fleet: Path, dsn: str) -> None:
    other = {"GUARD_WORKSPACE": f"{dsn}&guard_workspace=an%20other"}
    assert run("breaker", "trip", "--reason", "test", env=other).code == 0
    assert run("breaker", "allow", env=other).code == 20
    assert run("breaker", "allow").code == 0


def test_a_password_on_the_command_line_is_refused(fleet: Path) -> None:
    for address in (NOBODY, "postgresql://h/d?password=s3kr%2Ft", "postgres://u:s3kr%2Ft@h/d"):
        done = run("--workspace", address, "status")
        assert done.code == 2
        assert "PGPASSWORD" in done.err
        assert "s3kr" not in done.err + done.out


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("check",),
        ("agent", "list", "--format", "json"),
        ("breaker", "allow"),
        ("verify",),
        ("log", "--export", "-"),
        ("config",),
        ("config", "--format", "json"),
        ("where", "--format", "json"),
        ("doctor", "--format", "json"),
        ("-v", "run", "--", "true"),
    ],
    ids=" ".join,
)
def test_an_unreachable_server_is_said_in_bounded_time_and_without_the_password(
    words: tuple[str, ...], fleet: Path
) -> None:
    begun = time.monotonic()
    done = run(*words, env={"GUARD_WORKSPACE": NOBODY})
    assert time.monotonic() - begun < 120
    assert "s3kr" not in done.out + done.err
    if words[0] not in ("config", "where", "doctor"):
        assert done.code == 6, done.err
        assert "cannot reach postgresql://guard@127.0.0.1:1/x" in done.err


def test_an_address_that_is_none_is_wrong_usage(fleet: Path) -> None:
    for address in ("postgresql://[::1/x", "postgresql://u:s3kr@h/d#s3kr"):
        done = run("status", env={"GUARD_WORKSPACE": address})
        assert done.code == 2
        assert "s3kr" not in done.err


def test_a_child_finds_the_password_where_its_parent_did(fleet: Path) -> None:
    told = NOBODY.replace(":s3kr%2Ft", "")
    done = run("--workspace", told, "status", env={"GUARD_WORKSPACE": NOBODY})
    assert done.code == 6
    assert "s3kr" not in done.err


def test_the_state_of_a_newer_guard_is_refused(
    fleet: Path, dsn: str, postgres: PostgresServer
) -> None:
    assert run("breaker", "reset").code == 0
    name = dsn.split("?")[0].rpartition("/")[2]
    postgres.query(name, "UPDATE guard.format SET version = 99")
    done = run("breaker", "reset")
    assert done.code == 5
    assert "upgrade guard" in done.err


def test_a_role_that_may_only_read_and_write_rows_is_enough(
    fleet: Path, dsn: str, postgres: PostgresServer
) -> None:
    assert run("breaker", "reset").code == 0
    name = dsn.split("?")[0].rpartition("/")[2]
    postgres.query(
        name,
        "CREATE ROLE worker LOGIN; GRANT USAGE ON SCHEMA guard TO worker;"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA guard TO worker;"
        "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA guard TO reader;"
        "GRANT SELECT ON ALL TABLES IN SCHEMA guard TO reader;",
    )
    try:
        worker = {"GUARD_WORKSPACE": dsn.replace("guard@", "worker@")}
        reader = {"GUARD_WORKSPACE": dsn.replace("guard@", "reader@")}
        assert run("breaker", "trip", "--reason", "x", env=worker).code == 0
        assert run("verify", env=reader).code == 0
        assert run("breaker", "reset", env=reader).code == 4
        assert run("breaker", "allow", env=worker).code == 20
    finally:
        postgres.query(
            name, "DROP OWNED BY worker; DROP OWNED BY reader; DROP ROLE worker; DROP ROLE reader"
        )


class RoundTrips:
    """A proxy that counts how often the client begins to speak after the server did."""

    def __init__(self, upstream: str, folder: Path) -> None:
        self.count = 0
        self._upstream = upstream
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        """Pass on what either side says until one of them is gone; one thread owns both sockets."""
        with suppress(OSError), client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._upstream)
            spoke_last = server
            other = {client: server, server: client}
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    self.count += source is client and spoke_last is server
                    spoke_last = source
                    other[source].sendall(data)

    def close(self) -> None:
        self._listener.close()


@contextmanager
def counted(postgres: PostgresServer) -> Iterator[tuple[str, RoundTrips]]:
    """The address of a folder whose socket leads to the server, and what counts there."""
    folder = postgres.folder / f"p{os.getpid()}"
    folder.mkdir()
    proxy = RoundTrips(str(postgres.folder / ".s.PGSQL.5432"), folder)
    try:
        yield str(folder), proxy
    finally:
        proxy.close()
        (folder / ".s.PGSQL.5432").unlink()
        folder.rmdir()


def test_a_change_has_two_round_trips_and_an_update_at_most_ten(
    fleet: Path, dsn: str, postgres: PostgresServer
) -> None:
    from guard.core.agents.registry import AGENT_REGISTRY
    from tests.store.test_contract import open_at
    from tests.support.events import spawned, updated

    with counted(postgres) as (folder, proxy):
        address = dsn.replace(f"host={postgres.folder}", f"host={folder}")
        spawn = ("agent", "spawn", "--task", "T1", "--agent", "a1")
        assert run(*spawn, env={"GUARD_WORKSPACE": address}).code == 0
        proxy.count = 0
        update = ("agent", "update", "--task", "T1", "--agent", "a1", "--status", "working")
        assert run(*update, env={"GUARD_WORKSPACE": address}).code == 0
        assert 0 < proxy.count <= 10
        store = open_at(address)
        with store.change() as change:
            change.append(spawned())
        for event in (updated(), updated("completed")):
            proxy.count = 0
            with store.change() as change:
                change.expect(AGENT_REGISTRY, "T1", "a1")
                assert change.fold(AGENT_REGISTRY, "T1").counts().spawned == 1
                change.append(event)
            assert proxy.count == 2


HOSTILE = [
    "'; DROP TABLE guard.event; --",
    "%s %(x)s %%",
    "\\x00 \\' $1 $$ E'\\n'",
    '"\n\t\u2028\u202e',
    "{}[]\x01\x7f",
    "null",
    "a\0b",
    "é" * 200,
]


def test_hostile_text_comes_back_the_same(fleet: Path, dsn: str) -> None:
    from guard.core.agents.events import AgentFindingRecorded, AgentUpdated
    from guard.core.agents.findings import FINDINGS
    from tests.store.test_contract import is_sound, open_at
    from tests.support.events import MOMENT, spawned, updated

    store = open_at(dsn)
    texts = [f"{text}{number}"[:500] for number in range(150) for text in HOSTILE]
    found_out = [
        AgentFindingRecorded(
            at=MOMENT,
            id=f"f{number}",
            task_id="T1",
            agent_id="a1",
            incarnation=1,
            severity="info",
            text=text,
            file=spell(text.encode()),
        )
        for number, text in enumerate(texts[:1000])
    ]
    with store.change() as change:
        change.append(spawned(), *(updated(message=text) for text in texts), *found_out)
    found = [e.event.message for e in open_at(dsn).entries() if isinstance(e.event, AgentUpdated)]
    assert found == texts
    findings = open_at(dsn).view(FINDINGS, "T1")
    assert findings is not None
    assert [one.text for one in findings.findings] == texts[:1000]
    assert [unspell(one.file or "") for one in findings.findings] == [
        text.encode() for text in texts[:1000]
    ]
    assert is_sound(store)


def test_workspaces_with_hostile_names_are_kept_apart(fleet: Path, dsn: str) -> None:
    from guard.store.dsn import parse_dsn
    from guard.store.postgres.store import PostgresStore
    from tests.support.events import spawned

    names = [text for text in HOSTILE if "\0" not in text]
    for number, name in enumerate(names, 1):
        address = parse_dsn(f"{dsn}&guard_workspace={quote(name)}")
        assert address.name == name
        store = PostgresStore(address, name, lock_timeout_seconds=60)
        with store.change() as change:
            change.append(*(spawned(agent=f"a{each}") for each in range(number)))
    found = {name: records for name, records, _ in store.fleet()}
    assert found == {name: number + 1 for number, name in enumerate(names, 1)}
    with pytest.raises(ValueError, match="NUL"):
        parse_dsn(f"{dsn}&guard_workspace=a%00b")


def test_git_is_as_it_was_after_all_of_it(fleet: Path) -> None:
    assert run("baseline").code == 0
    assert git(fleet, "status", "--porcelain") == ""
