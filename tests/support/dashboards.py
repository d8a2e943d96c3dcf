"""A dashboard as a person starts it: a process of its own, and requests to it byte for byte."""

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from tests.support import TIME_LIMIT


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]


@dataclass
class Served:
    """A dashboard that listens, and what a browser that has opened its address knows."""

    address: str
    process: "subprocess.Popen[str]"
    cookie: str = field(default="", init=False)

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return self.address.partition("token=")[2]

    def enter(self) -> None:
        """Exchange the token for the cookie."""
        answer = self.ask(f"/?token={self.token}", cookie="")
        assert answer.status == 303, answer.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        cookie: str | None = None,
        host: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: str = "",
    ) -> Answer:
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIME_LIMIT)
        try:
            wire.putrequest(method, path, skip_host=True)
            wire.putheader("Host", self.host if host is None else host)
            known = self.cookie if cookie is None else cookie
            if known:
                wire.putheader("Cookie", known)
            for name, text in (headers or {}).items():
                wire.putheader(name, text)
            if method == "POST":
                wire.putheader("Content-Type", "application/x-www-form-urlencoded")
                wire.putheader("Content-Length", str(len(body.encode())))
            wire.endheaders(body.encode() if body else None)
            answer = wire.getresponse()
            text = answer.read().decode()
            return Answer(
                answer.status, text, {name.lower(): line for name, line in answer.getheaders()}
            )
        finally:
            wire.close()

    def post(self, path: str, headers: Mapping[str, str] | None = None, **form: str) -> Answer:
        """Send a form as a page of this server does; `headers` replace what a browser adds."""
        sent = {"Origin": f"http://{self.host}"} if headers is None else headers
        return self.ask(path, method="POST", headers=sent, body=urlencode(form))


@contextmanager
def serve(root: Path, *words: str) -> Iterator[Served]:
    """Run `guard dashboard` in a repository."""
    process = subprocess.Popen(
        [sys.executable, "-m", "guard", "dashboard", *words],
        cwd=root,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise AssertionError(process.communicate(timeout=TIME_LIMIT)[1])
        served = Served(address, process)
        served.enter()
        yield served
    finally:
        process.terminate()
        process.communicate(timeout=TIME_LIMIT)
