"""`guard status --fleet` and `guard agent list --fleet`: all machines and repositories of one database."""

import json
import os
import sys
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from guard.schemas.validate import validator
from tests.support import commit, new_repository, run


@pytest.fixture
def two(repository: Path, tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two repositories with their state in one database."""
    commit(repository)
    monkeypatch.setenv("GUARD_WORKSPACE", dsn)
    return [repository, new_repository(tmp_path / "second", "x.txt")]


def spawn(repository: Path, machine: str, agent: str) -> None:
    words = ("agent", "spawn", "--task", "T1", "--agent", agent)
    done = run(*words, cwd=repository, env={"GUARD_MACHINE": machine})
    assert done.code == 0, done.err


def test_agents_of_all_machines_and_repositories_are_listed(two: list[Path]) -> None:
    first, second = two
    spawn(first, "a", "a1")
    spawn(first, "b", "b1")
    spawn(second, "b", "b1")
    report = run("status", "--fleet", "--format", "json", cwd=first).json
    assert list(validator("fleet").iter_errors(report)) == []
    assert [one["active_agents"] for one in report["workspaces"]] == [2, 1]
    names = [one["name"] for one in report["workspaces"]]
    assert {(agent["workspace"], agent["agent_id"]) for agent in report["agents"]} == {
        (names[0], "a1"),
        (names[0], "b1"),
        (names[1], "b1"),
    }
    listed = run("agent", "list", "--fleet", cwd=second)
    assert listed.out.count("T1/") == 3
    assert report["warnings"] == []


def test_runs_and_breakers_of_other_machines_are_shown(two: list[Path]) -> None:
    first, second = two
    env = {"GUARD_MACHINE": "a"}
    assert run("breaker", "trip", "--reason", "tired", cwd=first, env=env).code == 0
    code = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'guard', *sys.argv[1:]]))"
    asks = ("status", "--fleet", "--format", "json")
    done = run(
        "run",
        "--",
        sys.executable,
        "-c",
        f"import os; os.environ['GUARD_MACHINE'] = 'b'; {code}",
        *asks,
        cwd=second,
        env=env,
    )
    report, _ = json.JSONDecoder().raw_decode(done.out[done.out.index("{") :])
    assert [(line["iteration"], line["is_watched"]) for line in report["runs"]] == [(1, True)]
    assert report["runs"][0]["host"] == os.uname().nodename
    assert [(line["state"], line["reason"]) for line in report["breakers"]] == [("open", "tired")]
    after = run(*asks, cwd=second).json
    assert after["runs"] == []


def test_what_cannot_be_read_is_said(two: list[Path], dsn: str) -> None:
    first, second = two
    spawn(first, "a", "a1")
    spawn(second, "a", "a1")
    with psycopg.connect(dsn) as connection:
        (data,) = connection.execute(
            "SELECT document FROM guard.view WHERE workspace = 1 AND starts_with(path, 'registry/')"
        ).fetchone() or (b"",)
        body = data[: data.rindex(b',\n  "hash"')].replace(
            b"global-registry/1", b"global-registry/99"
        )
        newer = b'%s,\n  "hash": "%s"\n}\n' % (body, sha256(body).hexdigest().encode())
        connection.execute(
            "UPDATE guard.view SET document = %s WHERE workspace = 1 AND starts_with(path, 'registry/')",
            [newer],
        )
    done = run("status", "--fleet", cwd=second)
    assert done.code == 0
    assert "not seen: project" in done.out
    assert "T1/a1" in done.out


def test_a_folder_is_no_fleet(repository: Path, workspace: Path) -> None:
    done = run("--workspace", workspace, "status", "--fleet")
    assert done.code == 2
    assert "GUARD_WORKSPACE" in done.err
