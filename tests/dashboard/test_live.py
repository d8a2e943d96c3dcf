"""News of the log: told at once, to every viewer, without a page asking again and again."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import TIME_LIMIT, commit, run
from tests.support.dashboards import Served, serve


class Viewer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer

    def hear(self) -> int:
        """Wait for the next piece of news."""
        while True:
            line = self.answer.readline().decode()
            assert line, "the stream has ended"
            name, _, text = line.strip().partition(": ")
            if name == "data":
                return int(text)


@contextmanager
def view(served: Served, path: str) -> Iterator[Viewer]:
    wire = http.client.HTTPConnection("127.0.0.1", served.port, timeout=TIME_LIMIT)
    try:
        wire.request("GET", path, headers={"Cookie": served.cookie})
        answer = wire.getresponse()
        assert answer.status == 200
        assert answer.getheader("content-type", "").startswith("text/event-stream")
        yield Viewer(answer)
    finally:
        wire.close()


def newest() -> int:
    events = run("log", "--format", "json").json["events"]
    return int(events[-1]["seq"]) if events else 0


@pytest.fixture
def begun(repository: Path) -> Path:
    commit(repository)
    return repository


def test_every_viewer_hears_of_what_is_recorded(begun: Path) -> None:
    with serve(begun) as served:
        news = f"{served.ask('/').headers['location']}news"
        with view(served, news) as one, view(served, news) as two:
            assert (one.hear(), two.hear()) == (0, 0)
            run("baseline")
            for viewer in (one, two):
                heard = viewer.hear()
                while heard < newest():
                    heard = viewer.hear()
        with view(served, news) as late:
            assert late.hear() == newest()
            run("breaker", "trip")
            heard = late.hear()
            while heard < newest():
                heard = late.hear()


def test_the_page_says_up_to_where_it_was_read(begun: Path) -> None:
    run("baseline")
    with serve(begun) as served:
        start = served.ask("/").headers["location"]
        assert f'data-seq="{newest()}"' in served.ask(start).text
        run("breaker", "trip")
        assert f'data-seq="{newest()}"' in served.ask(start).text


def test_the_stream_wants_the_token_too(begun: Path) -> None:
    with serve(begun) as served:
        news = f"{served.ask('/').headers['location']}news"
        assert served.ask(news, cookie="").status == 403
        assert served.ask(news, host="rebound.example").status == 403


def test_viewers_do_not_hold_up_its_end(begun: Path) -> None:
    with serve(begun) as served:
        news = f"{served.ask('/').headers['location']}news"
        with view(served, news) as viewer:
            viewer.hear()
            served.process.terminate()
            served.process.communicate(timeout=TIME_LIMIT)
            assert served.process.returncode == 130
