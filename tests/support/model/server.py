"""The model's HTTP side: one server per test, on a free port of 127.0.0.1."""

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType

from tests.support.model import Model, chat, gemini, messages, responses
from tests.support.model.replies import Document, Reply

_PROTOCOLS = (messages, responses, chat, gemini)


@contextmanager
def serving(model: Model) -> Iterator[None]:
    """Answer requests for as long as the block runs."""
    server = _Server(model)
    model.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        model.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.model = model

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news; anything else fails the test as unscripted."""
        cause = sys.exception()
        if not isinstance(cause, ConnectionError):
            self.model.unscripted.append(repr(cause))


class _Exchange(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the requests are kept in the model."""

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        if len(body) < length:
            return  # A client that was killed in mid-sentence.
        path = self.path.partition("?")[0]
        protocol = next((one for one in _PROTOCOLS if one.PATH.fullmatch(path)), None)
        if protocol is None:
            self.send_error(404)
        else:
            document = json.loads(body)
            streamed = document.get("stream") or "streamGenerate" in path
            self._answer(protocol, document, streamed=bool(streamed))

    def _answer(self, protocol: ModuleType, body: Document, *, streamed: bool) -> None:
        model = self.server.model
        model.requests.append(body)
        reply: Reply = model.reply(protocol.turns(body))
        if model.stopped.wait(reply.delay):
            return
        if reply.status != 200:
            self._document(reply.status, protocol.error(reply), reply.headers)
        elif streamed:
            self._events(protocol.stream(reply, len(model.requests), body))
        else:
            self._document(200, protocol.whole(reply, len(model.requests), body), {})

    def _events(self, events: Iterator[Document]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())

    def _document(self, status: int, body: Document, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
