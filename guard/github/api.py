"""Call GitHub's API with one retry policy and one time limit, and send the token to no other server."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
from requests.auth import AuthBase
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from guard import __version__
from guard.core.base.text import escape, shorten
from guard.core.rescue.redact import redact
from guard.errors import Refused, RepositoryProblem, StoreUnavailable

T = TypeVar("T")
CALL_SECONDS = 15.0
_MOST_BYTES = 16 * 1024 * 1024
_MOST_REDIRECTS = 3
_LONGEST_PAUSE = 30.0
_TOKEN = re.compile(r"[!-~]{1,4096}")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")


class TryAgain(Exception):
    """Raised if GitHub cannot answer now; `after` is the wait in seconds that it asks for, if any."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class _Bearer(AuthBase):
    """Sends the token; as authentication and not as a header, so that a `.netrc` does not replace it."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def find_token(environ: Mapping[str, str]) -> str:
    # The environment is the only source of the token.
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or ""
    if not _TOKEN.fullmatch(token):
        what = "is not a valid token" if token else "is missing"
        raise RepositoryProblem(f"the token for GitHub {what}", "set GITHUB_TOKEN or GH_TOKEN")
    return token


def check_repository_name(name: str | None) -> str:
    """Return OWNER/NAME if it is safe in a URL; raise RepositoryProblem otherwise."""
    if not name or not _REPOSITORY.fullmatch(name) or ".." in name:
        raise RepositoryProblem(
            f"{name or 'nothing'} does not name a repository", "set GITHUB_REPOSITORY: OWNER/NAME"
        )
    return name


@dataclass
class Client:
    """Calls one server; all calls together have one time limit."""

    server: str
    token: str = field(repr=False)
    seconds: float = 60.0
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    ticks: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if (
            urlsplit(self.server).scheme not in ("https", "http")
            or not urlsplit(self.server).netloc
        ):
            raise RepositoryProblem(f"{self.server} is not an address", "check GITHUB_API_URL")
        self._deadline = self.ticks() + self.seconds
        self._session = requests.Session()
        self._session.auth = _Bearer(self.token)
        self._session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "User-Agent": f"completion-guard/{__version__}",
                "X-GitHub-Api-Version": "2022-11-28",
            }
        )

    def persist(self, operation: Callable[[], T]) -> T:
        """Repeat the operation until it succeeds, GitHub refuses it, or the time is over."""
        retrying = Retrying(
            retry=retry_if_exception_type(TryAgain),
            wait=_pause,
            stop=self._is_over,
            sleep=self.sleep,
            reraise=True,
        )
        try:
            return retrying(operation)
        except TryAgain as error:
            raise StoreUnavailable(
                f"guard could not report to GitHub within {self.seconds:g} s: {self._make_printable(str(error))}",
                "try again later, or raise --time-limit",
            ) from None

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self.call(method, f"{self.server.rstrip('/')}{path}", body)[0]

    def call(
        self, method: str, address: str, body: Mapping[str, Any] | None = None
    ) -> tuple[Any, str | None]:
        """Return the document of the answer, and the address of the next page if there is one."""
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._attempt(method, self._require_own_server(address), body)
            if answer.status_code not in (301, 302, 303, 307, 308):
                return self._document(answer), answer.links.get("next", {}).get("url")
            address = urljoin(address, answer.headers.get("Location", ""))
        raise Refused("GitHub redirects guard from one address to the next", "check GITHUB_API_URL")

    def _require_own_server(self, address: str) -> str:
        # The token goes to no other server.
        ours, theirs = urlsplit(self.server), urlsplit(address)
        if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
            raise Refused(
                f"GitHub redirects guard to another server: {escape(theirs.netloc)[:200]}",
                "check GITHUB_API_URL and GITHUB_REPOSITORY",
            )
        return address

    def _attempt(
        self, method: str, address: str, body: Mapping[str, Any] | None
    ) -> requests.Response:
        left = self._deadline - self.ticks()
        if left <= 0:
            raise TryAgain("the time is over")
        try:
            return self._session.request(
                method,
                address,
                json=body,
                timeout=min(CALL_SECONDS, left),
                allow_redirects=False,
            )
        except requests.exceptions.SSLError as error:
            raise Refused(f"GitHub's certificate: {self._make_printable(str(error))}") from None
        except (requests.ConnectionError, requests.Timeout) as error:
            raise TryAgain(f"{type(error).__name__}: {error}") from None
        except (requests.RequestException, ValueError) as error:
            raise Refused(
                f"GitHub could not be called: {self._make_printable(str(error))}"
            ) from None

    def _document(self, answer: requests.Response) -> Any:
        code = answer.status_code
        if code >= 500 or code == 429 or (code == 403 and _is_limited(answer)):
            raise TryAgain(f"GitHub answered {code}", _asked_pause(answer, self.now()))
        if code >= 400:
            raise Refused(
                f"GitHub refused with {code}: {self._make_printable(_message(answer))}",
                "check the token's permissions: statuses, checks, pull-requests: write",
            )
        try:
            return answer.json() if len(answer.content) <= _MOST_BYTES else None
        except (ValueError, RecursionError):
            raise TryAgain(f"GitHub answered {code} with a body that is not JSON") from None

    def _is_over(self, state: RetryCallState) -> bool:
        pause = state.upcoming_sleep
        return self.ticks() + pause >= self._deadline

    def _make_printable(self, text: str) -> str:
        return shorten(escape(redact(text, (self.token,))), 500)


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, TryAgain) and error.after is not None:
        return error.after
    return float(min(_LONGEST_PAUSE, 2 ** (state.attempt_number - 1)))


def _is_limited(answer: requests.Response) -> bool:
    # A 403 may be a rate limit or a refusal; a refusal has neither of these headers.
    return "Retry-After" in answer.headers or answer.headers.get("X-RateLimit-Remaining") == "0"


def _asked_pause(answer: requests.Response, now: float) -> float | None:
    after, reset = (
        answer.headers.get("Retry-After", ""),
        answer.headers.get("X-RateLimit-Reset", ""),
    )
    if after.isascii() and after.isdecimal():
        return float(after[:9])
    if answer.headers.get("X-RateLimit-Remaining") == "0" and reset.isascii() and reset.isdecimal():
        return max(0.0, float(reset[:12]) - now) + 1
    return None


def _message(answer: requests.Response) -> str:
    try:
        found = answer.json()
    except (ValueError, RecursionError):
        return answer.reason or ""
    return str(found.get("message", "")) if isinstance(found, dict) else ""
