"""Who gets in: a real server, and every way around its token."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import TIME_LIMIT, commit, run
from tests.support.dashboards import Served, serve

PATHS = ["/", "/static/style.css", "/static/dashboard.js", "/nothing"]


def log_of(root: Path) -> bytes:
    return Path(run("where", cwd=root).out.strip(), "events.jsonl").read_bytes()


def tree_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_shown(path: str, served: Served) -> None:
    name, _, value = served.cookie.partition("=")
    wrong = "x" * len(value)
    for cookie in ("", f"{name}=", f"{name}={wrong}", f"{name}={served.token}", f"other={value}"):
        answer = served.ask(path, cookie=cookie)
        assert answer.status == 403, cookie
        assert "<html" not in answer.text
        assert "set-cookie" not in answer.headers
    for token in ("", "wrong", served.token[:-1], served.token + "x", served.token.swapcase()):
        assert served.ask(f"{path}?token={token}", cookie="").status == 403
    twice = f"{path}?token={served.token}&token=wrong"
    assert served.ask(twice, cookie="").status == 403
    assert served.ask(path, cookie="", headers={"Authorization": "Bearer x"}).status == 403


def test_the_token_is_exchanged_for_a_cookie_that_no_page_can_read(served: Served) -> None:
    answer = served.ask(f"/?token={served.token}", cookie="")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert served.token not in cookie
    bearer = {"Authorization": f"Bearer {served.token}"}
    assert served.ask("/static/style.css", cookie="", headers=bearer).status == 200


def test_two_dashboards_have_two_tokens(night: Path, served: Served) -> None:
    with serve(night) as other:
        assert other.token != served.token
        name = other.cookie.partition("=")[0]
        assert other.ask("/", cookie=f"{name}={served.cookie.partition('=')[2]}").status == 403


@pytest.mark.parametrize(
    "host", ["rebound.example", "rebound.example:{port}", "127.0.0.1", "127.0.0.2:{port}", ""]
)
def test_a_name_of_somebody_else_is_refused(host: str, served: Served) -> None:
    named = host.format(port=served.port)
    for path in ("/", "/static/style.css", f"/?token={served.token}"):
        answer = served.ask(path, host=named)
        assert answer.status in (400, 403)
        assert "set-cookie" not in answer.headers
    assert served.ask("/static/style.css", host=f"localhost:{served.port}").status == 200


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "null", "http://127.0.0.1:1"])
def test_a_page_of_another_origin_is_refused(origin: str, served: Served) -> None:
    for method in ("GET", "POST"):
        assert served.ask("/", method=method, headers={"Origin": origin}).status == 403
    other = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert served.ask("/static/style.css", headers=other).status == 403


def test_every_answer_says_what_a_browser_may_do_with_it(served: Served) -> None:
    known = [served.ask(path) for path in (*PATHS, "/w/none/", f"/?token={served.token}")]
    refused = [served.ask("/", cookie=""), served.ask("/", host="rebound.example")]
    for answer in [*known, *refused]:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_it_listens_on_this_machine_alone(served: Served) -> None:
    shown = Path("/proc/net/tcp").read_text().splitlines()[1:] if sys.platform == "linux" else []
    places = [line.split()[1] for line in shown if line.split()[3] == "0A"]
    ours = [place for place in places if int(place.split(":")[1], 16) == served.port]
    assert ours == [f"0100007F:{served.port:04X}"] or sys.platform != "linux"


def test_looking_changes_nothing(night: Path, served: Served) -> None:
    workspace = Path(run("where").out.strip())
    before, commits = tree_of(workspace), log_of(night)
    key = served.ask("/").headers["location"]
    pages = ["", "agents", "plan", "none"]
    for page in pages:
        served.ask(f"{key}{page}")
        served.ask(f"{key}{page}", method="HEAD")
    assert tree_of(workspace) == before
    assert log_of(night) == commits


def test_a_port_that_is_taken_is_told(repository: Path) -> None:
    commit(repository)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = run("dashboard", "--port", str(other.getsockname()[1]))
    assert (done.code, "cannot listen on port" in done.err) == (2, True)


def test_without_its_packages_it_says_which_command_installs_them(repository: Path) -> None:
    commit(repository)
    # An environment without these packages: nothing finds them.
    script = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('starlette', 'uvicorn'):\n"
        "            raise ModuleNotFoundError(name=name)\n"
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, *a: None if name in ('starlette', 'uvicorn') else found(name, *a)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from guard.entry import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "dashboard"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        cwd=repository,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'completion-guard[web]'" in done.stderr
