"""Report a verdict on GitHub: a commit status or a check run, and one comment that is updated."""

from dataclasses import dataclass
from typing import Any, Literal

from guard.core.base.markdown_escape import MOST_IN_A_PIECE
from guard.core.base.text import escape
from guard.core.check.words import verdict_line
from guard.core.github.report import Push, StepReport, ToldReport
from guard.core.github.summary import summary
from guard.errors import Refused
from guard.github.api import Client

Kind = Literal["status", "check-run"]
How = Literal["created", "updated", "none"]
BOT = "github-actions[bot]"
_MOST_IN_A_DESCRIPTION = 140
_MOST_IN_A_COMMENT = 60_000
_MOST_PAGES = 30
_PENDING = ("limited", "waiting", "working", "begun")
_NO_PUSH = Push(ref=None, pushed=False, why="not_asked", detail="see the page of the run")


@dataclass(frozen=True)
class StatusNotice:
    """A verdict, and where to report it."""

    report: StepReport
    repository: str
    sha: str
    name: str
    page: str | None
    pull_request: int | None = None
    author: str = BOT
    """The login that writes the comments; guard never changes a comment of another author."""

    @property
    def marker(self) -> str:
        return f"<!-- completion-guard: {_plain_name(self.name)} -->"


def state_of(status: str, kind: Kind) -> str:
    if status == "complete":
        return "success"
    if kind == "status":
        return "pending" if status in _PENDING else "failure"
    return {"blocked": "action_required"}.get(
        status, "neutral" if status in _PENDING else "failure"
    )


def tell(client: Client, notice: StatusNotice, kind: Kind, *, if_permitted: bool) -> ToldReport:
    """Report the verdict; with `if_permitted` a refusal, as on forks, is listed in the report instead of raised."""
    refused: list[str] = []

    def attempt(what: Any) -> Any:
        try:
            return client.persist(what)
        except Refused as error:
            if not if_permitted:
                raise
            refused.append(error.message)
            return None

    state = state_of(notice.report.status, kind)
    post = _status if kind == "status" else _check_run
    status = attempt(lambda: client.send("POST", *post(notice, state)))
    comment: Any = None
    how: How = "none"
    if notice.pull_request is not None:
        comment, how = attempt(lambda: _comment(client, notice)) or (None, "none")
    return ToldReport(
        repository=notice.repository,
        sha=notice.sha,
        state=state,
        status_url=_url(status),
        comment_url=_url(comment),
        comment=how,
        refused=tuple(refused),
    )


def _headline(report: StepReport) -> str:
    return verdict_line(report.status, report.reason, "")[:_MOST_IN_A_DESCRIPTION]


def _status(notice: StatusNotice, state: str) -> tuple[str, dict[str, Any]]:
    body = {"state": state, "context": notice.name, "description": _headline(notice.report)}
    if notice.page:
        body["target_url"] = notice.page
    return f"/repos/{notice.repository}/statuses/{notice.sha}", body


def _check_run(notice: StatusNotice, state: str) -> tuple[str, dict[str, Any]]:
    page = summary(notice.report, _NO_PUSH, _MOST_IN_A_COMMENT)
    body: dict[str, Any] = {
        "name": notice.name,
        "head_sha": notice.sha,
        "status": "completed",
        "conclusion": state,
        "output": {"title": _headline(notice.report), "summary": page},
    }
    if notice.page:
        body["details_url"] = notice.page
    return f"/repos/{notice.repository}/check-runs", body


def _comment(client: Client, notice: StatusNotice) -> tuple[Any, How]:
    # Every attempt first looks for an earlier comment, so that a lost answer does not lead to a second one.
    link = f"\n[The run]({notice.page})\n" if notice.page else ""
    body = {
        "body": f"{notice.marker}\n{summary(notice.report, _NO_PUSH, _MOST_IN_A_COMMENT)}{link}"
    }
    base = f"/repos/{notice.repository}/issues"
    number = _find_comment(client, notice)
    if number is not None:
        return client.send("PATCH", f"{base}/comments/{number}", body), "updated"
    return client.send("POST", f"{base}/{notice.pull_request}/comments", body), "created"


def _find_comment(client: Client, notice: StatusNotice) -> int | None:
    path = f"/repos/{notice.repository}/issues/{notice.pull_request}/comments?per_page=100"
    address: str | None = f"{client.server.rstrip('/')}{path}"
    for _ in range(_MOST_PAGES):
        if address is None:
            break
        found, address = client.call("GET", address)
        for comment in found if isinstance(found, list) else ():
            if _is_ours(comment, notice):
                number = comment.get("id")
                return number if type(number) is int else None
    return None


def _is_ours(comment: Any, notice: StatusNotice) -> bool:
    if not isinstance(comment, dict):
        return False
    user, body = comment.get("user"), comment.get("body")
    login = user.get("login") if isinstance(user, dict) else None
    return login == notice.author and isinstance(body, str) and body.startswith(notice.marker)


def _url(answer: Any) -> str | None:
    found = answer.get("html_url") or answer.get("url") if isinstance(answer, dict) else None
    return escape(found)[:2000] if isinstance(found, str) else None


def _plain_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in " _/." else "_" for c in name)[:MOST_IN_A_PIECE]
