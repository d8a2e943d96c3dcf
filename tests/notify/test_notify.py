"""Notices to a person: what is sent, once each, and that a receiver that fails changes nothing."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.support import commit, run, write

DENIED = json.dumps(
    {"type": "result", "subtype": "success", "is_error": True, "result": "Invalid API key", "session_id": "s-1"}
)  # fmt: skip
ASKS = ("run", "--agent", "claude", "--no-probe", "--", "sh", "-c", f"echo '{DENIED}'; exit 1")


class Receiver(ThreadingHTTPServer):
    """A webhook that answers in one way, and keeps what it got."""

    daemon_threads = True

    def __init__(self, way: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.way, self.over, self.got = way, Event(), list[Any]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        match self.server.way:
            case "hangs":
                self.server.over.wait(60)
            case "closes":
                self.connection.shutdown(socket.SHUT_RDWR)
            case "redirects to a file":
                self.send_response(302)
                self.send_header("Location", "file:///etc/passwd")
                self.end_headers()
            case way:
                self.send_response(int(way))
                self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def receiver(way: str = "200") -> Iterator[Receiver]:
    with Receiver(way) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def begun(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


@pytest.mark.parametrize("way", ["200", "hangs", "500", "404", "closes", "redirects to a file"])
def test_whatever_the_webhook_does_the_verdict_is_the_same(way: str, begun: Path) -> None:
    with receiver(way) as hook:
        env = {"GUARD_NOTIFY__URL": hook.url, "GUARD_NOTIFY__TIMEOUT_SECONDS": "1"}
        result = run(*ASKS, env=env)
        assert result.code == 14
        assert ("a notice was not sent" in result.err) == (way != "200")
        document = json.loads(hook.got[0][1])
    assert list(validator("notice").iter_errors(document)) == []
    assert (document["kind"], document["iteration"]) == ("blocked", 1)
    assert "Invalid API key" in document["text"]


def test_nobody_listens(begun: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        env = {"GUARD_NOTIFY__URL": url, "GUARD_NOTIFY__TIMEOUT_SECONDS": "1"}
        assert run(*ASKS, env=env).code == 14


def test_a_command_gets_one_document_and_each_notice_goes_out_once(
    begun: Path, tmp_path: Path
) -> None:
    env = {"GUARD_NOTIFY__COMMAND": f"cat >> {tmp_path}/notices"}
    loop = ("loop", "--max-iterations", "4", "--no-probe", "--", "true")
    assert run(*loop, env=env).code == 20
    sent = [json.loads(line) for line in (tmp_path / "notices").read_text().splitlines()]
    assert [notice["kind"] for notice in sent] == ["breaker"]
    kinds = [event["kind"] for event in _events("notice_sent")]
    assert kinds == ["breaker"]


def test_the_end_of_a_loop_is_told(begun: Path, tmp_path: Path) -> None:
    write(begun / "tasks.md", "- [ ] one\n")
    commit(begun, "tasks.md", "- [ ] one\n")
    agent = "sed -i 's/ \\]/x]/' tasks.md; git commit -qam done"
    env = {"GUARD_NOTIFY__COMMAND": f"cat >> {tmp_path}/notices"}
    words = ("loop", "--until-tasks-done", "tasks.md", "--no-probe", "--", "sh", "-c", agent)
    assert run(*words, env=env).code == 0
    (sent,) = [json.loads(line) for line in (tmp_path / "notices").read_text().splitlines()]
    assert (sent["kind"], sent["title"]) == (
        "ended",
        f"{begun.name}: the loop has ended: tasks_done",
    )


@pytest.mark.parametrize("command", ["exit 3", "sleep 60"])
def test_a_command_that_fails_changes_nothing(command: str, begun: Path) -> None:
    env = {"GUARD_NOTIFY__COMMAND": command, "GUARD_NOTIFY__TIMEOUT_SECONDS": "1"}
    result = run(*ASKS, env=env)
    assert result.code == 14
    assert "a notice was not sent by notify.command" in result.err


def test_the_project_cannot_name_a_receiver(begun: Path, tmp_path: Path) -> None:
    write(begun / "guard.toml", f'[notify]\ncommand = "touch {tmp_path}/called"\n')
    result = run(*ASKS)
    assert result.code == 14
    assert "notify.command" in result.err
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("slack", b'{"text": "*project: a test notice*\\nnotices of guard arrive here"}'),
        ("ntfy", b"notices of guard arrive here"),
    ],
)
def test_the_forms_of_a_webhook(form: str, body: bytes, begun: Path) -> None:
    with receiver() as hook:
        env = {"GUARD_NOTIFY__URL": hook.url, "GUARD_NOTIFY__FORMAT": form}
        result = run("notify", "--test", env=env)
        assert (result.code, result.out) == (0, "notify.url: sent\n")
        headers, got = hook.got[0]
    assert got == body.replace(b"project", begun.name.encode())
    assert headers.get("Title") in (None, f"{begun.name}: a test notice")


def test_a_test_notice_that_fails_is_exit_code_1(begun: Path) -> None:
    env = {"GUARD_NOTIFY__URL": "ftp://example.org", "GUARD_NOTIFY__COMMAND": "cat > /dev/null"}
    result = run("notify", "--test", "--format", "json", env=env)
    assert result.code == 1
    found = {each["way"]: each["sent"] for each in result.json["deliveries"]}
    assert found == {"command": True, "url": False}
    assert run("notify", "--test").code == 2
    assert run("notify").code == 2


def test_the_report_of_a_loop_is_kept_current(begun: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    seen = (
        f"[ ! -e {report} ] || cp {report} {tmp_path}/seen.json; git commit -q --allow-empty -m x"
    )
    words = (
        "loop",
        "--report",
        report,
        "--max-iterations",
        "2",
        "--no-probe",
        "--",
        "sh",
        "-c",
        seen,
    )
    run(*words)
    during = json.loads((tmp_path / "seen.json").read_text())
    assert (during["reason"], during["ended"], len(during["iterations"])) == ("running", None, 1)
    assert list(validator("loop").iter_errors(during)) == []
    after = json.loads(report.read_text())
    assert (after["reason"], len(after["iterations"])) == ("max_iterations", 2)


def _events(kind: str) -> list[dict[str, Any]]:
    lines = run("log", "--format", "json").out
    document = json.loads(lines)
    return [event for event in document["events"] if event["type"] == kind]
