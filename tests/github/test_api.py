"""GitHub's API, with answers as GitHub gives them: what is tried again and for how long, and where the token goes."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import responses

from guard.errors import Refused, RepositoryProblem, StoreUnavailable
from guard.github.api import Client, check_repository_name, find_token
from guard.github.status import BOT, StatusNotice, state_of, tell
from tests.support.steps import OID, step

SERVER = "https://api.example.com"
TOKEN = "ghp_" + "Zq8" * 12
STATUS = f"{SERVER}/repos/o/n/statuses/{OID}"
COMMENTS = f"{SERVER}/repos/o/n/issues/7/comments"


class Time:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def client(time: Time) -> Client:
    clock = lambda: time.now  # noqa: E731
    return Client(SERVER, TOKEN, seconds=100, now=clock, sleep=time.sleep, ticks=clock)


@pytest.fixture
def server() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock(assert_all_requests_are_fired=True) as mock:
        yield mock


def sent(body: bytes | str | None) -> str:
    return body.decode() if isinstance(body, bytes) else body or ""


def told(**fields: Any) -> StatusNotice:
    given = {"report": step("<b>x"), "repository": "o/n", "sha": OID, "name": "guard", "page": None}
    return StatusNotice(**{**given, **fields})


def test_a_status_is_posted(client: Client, server: responses.RequestsMock) -> None:
    server.post(STATUS, json={"url": STATUS})
    found = tell(client, told(), "status", if_permitted=False)
    assert (found.state, found.status_url, found.comment) == ("failure", STATUS, "none")
    call = server.calls[0].request
    assert call.headers["Authorization"] == f"Bearer {TOKEN}"
    assert '"context": "guard"' in sent(call.body)
    assert TOKEN not in repr(client)


def test_a_check_run_is_posted(client: Client, server: responses.RequestsMock) -> None:
    server.post(f"{SERVER}/repos/o/n/check-runs", json={"html_url": "https://example.com/1"})
    found = tell(client, told(), "check-run", if_permitted=False)
    assert found.status_url == "https://example.com/1"


@pytest.mark.parametrize(
    ("answer", "slept"),
    [
        ({"status": 500}, [1.0]),
        ({"status": 502, "body": "<html>"}, [1.0]),
        ({"status": 503, "headers": {"Retry-After": "7"}}, [7.0]),
        ({"status": 429, "headers": {"Retry-After": "3"}}, [3.0]),
        ({"status": 429, "headers": {"Retry-After": "soon"}}, [1.0]),
        (
            {
                "status": 403,
                "headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1000030"},
            },
            [31.0],
        ),
        ({"status": 403, "headers": {"Retry-After": "0"}}, [0.0]),
        ({"status": 200, "body": "no json"}, [1.0]),
        ({"body": requests.ConnectionError("reset")}, [1.0]),
        ({"body": requests.Timeout("slow")}, [1.0]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_passes_is_tried_again(
    answer: dict[str, Any],
    slept: list[float],
    client: Client,
    time: Time,
    server: responses.RequestsMock,
) -> None:
    server.post(STATUS, **answer)
    server.post(STATUS, json={})
    tell(client, told(), "status", if_permitted=False)
    assert time.slept == slept


@pytest.mark.parametrize("pause", ["3600", "99999999999999999999"])
def test_a_pause_beyond_the_limit_is_not_begun(
    pause: str, client: Client, time: Time, server: responses.RequestsMock
) -> None:
    server.post(STATUS, status=429, headers={"Retry-After": pause})
    with pytest.raises(StoreUnavailable, match="within 100 s: GitHub answered 429"):
        tell(client, told(), "status", if_permitted=False)
    assert time.slept == []


def test_all_attempts_together_have_one_limit(
    client: Client, time: Time, server: responses.RequestsMock
) -> None:
    server.post(STATUS, status=500)
    with pytest.raises(StoreUnavailable):
        tell(client, told(), "status", if_permitted=False)
    assert sum(time.slept) < 100


@pytest.mark.parametrize("code", [401, 403, 404, 422])
def test_a_refusal_is_not_tried_again_and_shows_no_token(
    code: int, client: Client, time: Time, server: responses.RequestsMock
) -> None:
    server.post(STATUS, status=code, json={"message": f"bad {TOKEN}\x1b[31m"})
    with pytest.raises(Refused) as caught:
        tell(client, told(), "status", if_permitted=False)
    assert f"refused with {code}: bad [redacted]\\x1b" in caught.value.message
    assert time.slept == []


def test_what_is_not_permitted_is_noted_where_one_can_do_without(
    client: Client, server: responses.RequestsMock
) -> None:
    server.post(STATUS, status=403, json={"message": "Resource not accessible by integration"})
    server.get(COMMENTS, status=403, json={})
    found = tell(client, told(pull_request=7), "status", if_permitted=True)
    assert (len(found.refused), found.status_url, found.comment) == (2, None, "none")


@pytest.mark.parametrize(
    "place", ["https://evil.example/x", "http://api.example.com/x", "//evil.example/x"]
)
def test_the_token_follows_no_redirect_to_another_server(
    place: str, client: Client, server: responses.RequestsMock
) -> None:
    server.post(STATUS, status=307, headers={"Location": place})
    with pytest.raises(Refused, match="another server"):
        tell(client, told(), "status", if_permitted=False)
    assert len(server.calls) == 1


def test_a_redirect_on_the_same_server_is_followed(
    client: Client, server: responses.RequestsMock
) -> None:
    server.post(STATUS, status=307, headers={"Location": "/repositories/1/statuses"})
    server.post(f"{SERVER}/repositories/1/statuses", json={"url": "u"})
    assert tell(client, told(), "status", if_permitted=False).status_url == "u"


def test_redirects_that_never_end_are_refused(
    client: Client, server: responses.RequestsMock
) -> None:
    server.post(STATUS, status=307, headers={"Location": STATUS})
    with pytest.raises(Refused, match="from one address to the next"):
        tell(client, told(), "status", if_permitted=False)


def comment(author: str, body: str, number: int = 5) -> dict[str, Any]:
    return {"id": number, "user": {"login": author}, "body": body}


@pytest.mark.parametrize(
    ("earlier", "how"),
    [
        ([], "created"),
        ([comment(BOT, told().marker + "\nold")], "updated"),
        ([comment("somebody", told().marker + "\nplanted")], "created"),
        ([comment(BOT, "quoted: " + told().marker)], "created"),
        ([comment(BOT, "<!-- completion-guard: other -->")], "created"),
        ([None, 1, "x", {}, {"user": 1, "body": 2}], "created"),
        ({"odd": True}, "created"),
    ],
)
def test_one_comment_is_kept_current(
    earlier: Any, how: str, client: Client, server: responses.RequestsMock
) -> None:
    server.post(STATUS, json={})
    server.get(COMMENTS, json=earlier)
    if how == "created":
        server.post(COMMENTS, json={"html_url": "u"})
    else:
        server.patch(f"{SERVER}/repos/o/n/issues/comments/5", json={"html_url": "u"})
    found = tell(client, told(pull_request=7), "status", if_permitted=False)
    assert (found.comment, found.comment_url) == (how, "u")
    body = sent(server.calls[-1].request.body)
    assert "completion-guard: guard" in body
    assert "<b>" not in body


def test_the_comment_is_found_on_a_later_page(
    client: Client, server: responses.RequestsMock
) -> None:
    server.post(STATUS, json={})
    server.get(COMMENTS, json=[], headers={"Link": f'<{SERVER}/page2>; rel="next"'})
    server.get(f"{SERVER}/page2", json=[comment(BOT, told().marker)])
    server.patch(f"{SERVER}/repos/o/n/issues/comments/5", json={})
    assert tell(client, told(pull_request=7), "status", if_permitted=False).comment == "updated"


def test_an_answer_that_was_lost_makes_no_second_comment(
    client: Client, server: responses.RequestsMock
) -> None:
    server.post(STATUS, json={})
    server.get(COMMENTS, json=[])
    server.post(COMMENTS, body=requests.ConnectionError("reset after it was written"))
    server.get(COMMENTS, json=[comment(BOT, told().marker)])
    server.patch(f"{SERVER}/repos/o/n/issues/comments/5", json={})
    assert tell(client, told(pull_request=7), "status", if_permitted=False).comment == "updated"


@pytest.mark.parametrize(
    ("status", "state", "conclusion"),
    [
        ("complete", "success", "success"),
        ("timeout", "failure", "failure"),
        ("limited", "pending", "neutral"),
        ("blocked", "failure", "action_required"),
        ("fault", "failure", "failure"),
    ],
)
def test_githubs_words(status: str, state: str, conclusion: str) -> None:
    assert (state_of(status, "status"), state_of(status, "check-run")) == (state, conclusion)


@pytest.mark.parametrize("environ", [{}, {"GITHUB_TOKEN": "a b"}, {"GH_TOKEN": "x\r\nHost: y"}])
def test_no_token_no_call(environ: dict[str, str]) -> None:
    with pytest.raises(RepositoryProblem) as caught:
        find_token(environ)
    assert "Host" not in caught.value.message


def test_the_first_token_counts() -> None:
    assert find_token({"GITHUB_TOKEN": "", "GH_TOKEN": "b"}) == "b"
    assert find_token({"GITHUB_TOKEN": "a", "GH_TOKEN": "b"}) == "a"


@pytest.mark.parametrize("name", [None, "", "n", "o/n/x", "../n", "o/..", "o/n?x", "o/n#x", "ö/n"])
def test_what_names_no_repository(name: str | None) -> None:
    with pytest.raises(RepositoryProblem):
        check_repository_name(name)


@pytest.mark.parametrize("server", ["file:///etc", "api.github.com", "", "https://"])
def test_what_is_no_address(server: str) -> None:
    with pytest.raises(RepositoryProblem):
        Client(server, TOKEN)
