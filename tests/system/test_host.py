"""Machines told apart: here, restarted, another one, and what nobody can tell."""

import subprocess
import sys

import pytest

from guard.core.agents.whereabouts import Host
from guard.system.host import compare_hosts, read_host

HOST = Host(name="desk", machine="m1", boot_id="b1", pid_namespace="pid:[1]")
BARE = Host(name="desk", machine=None, boot_id=None, pid_namespace=None)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({}, "here", id="nothing changed"),
        pytest.param({"name": "cafe"}, "here", id="a laptop got another name"),
        pytest.param({"machine": None}, "here", id="same boot, machine not told"),
        pytest.param({"pid_namespace": "pid:[2]"}, "elsewhere", id="another container"),
        pytest.param({"pid_namespace": None}, "unknown", id="namespace not told"),
        pytest.param({"boot_id": "b2"}, "restarted", id="restarted"),
        pytest.param({"boot_id": "b2", "name": "x"}, "elsewhere", id="copied machine"),
        pytest.param({"boot_id": "b2", "machine": "m2"}, "elsewhere", id="same name elsewhere"),
        pytest.param({"boot_id": "b2", "machine": None}, "elsewhere", id="machine not told"),
        pytest.param(
            {"boot_id": "b2", "pid_namespace": "pid:[2]"}, "elsewhere", id="container elsewhere"
        ),
        pytest.param({"boot_id": None}, "unknown", id="boot not told"),
        pytest.param({"boot_id": None, "machine": "m2"}, "elsewhere", id="machine without boot"),
    ],
)
def test_where_a_recorded_host_is(changed: dict[str, str | None], expected: str) -> None:
    other = HOST.model_copy(update=changed)
    assert compare_hosts(other, HOST) == expected
    assert compare_hosts(HOST, other) == expected


def test_nothing_recorded_is_unknown() -> None:
    assert compare_hosts(None, HOST) == "unknown"


def test_two_machines_that_tell_only_their_name_are_not_taken_for_one() -> None:
    assert compare_hosts(BARE, BARE) == "unknown"


def test_a_machine_that_never_tells_its_boot_is_known_by_its_id() -> None:
    host = BARE.model_copy(update={"machine": "m1"})
    assert compare_hosts(host, host) == "here"


def test_two_machines_that_differ_only_in_unknown_ids_are_not_one_restarted() -> None:
    first, second = (BARE.model_copy(update={"boot_id": boot}) for boot in ("b1", "b2"))
    assert compare_hosts(first, second) == "elsewhere"


def test_all_processes_of_a_machine_are_at_the_same_place() -> None:
    code = "from guard.system.host import read_host; print(read_host().model_dump_json())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert Host.model_validate_json(said.stdout) == read_host()
    assert compare_hosts(Host.model_validate_json(said.stdout), read_host()) == "here"
