"""Send notices to a person: once each, within a time limit, and without any effect on a verdict or an exit code."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import urlsplit

from guard.context.invocation import Invocation
from guard.core.notify.events import NoticeSent
from guard.core.notify.notice import (
    TEST,
    Delivery,
    Notice,
    NoticeReport,
    make_safe,
    notice_of_budget,
    notice_of_end,
)
from guard.core.notify.settings import NotifySettings
from guard.errors import GuardError, WrongUsage
from guard.system.processes import run

__all__ = ["notice_of_budget", "notice_of_end", "send_notice", "send_test"]

Way = Literal["command", "url", "services"]
_MOST_ATTEMPTS = 5
_QUIETLY = 'exec > /dev/null 2>&1; exec /bin/sh -c "$1"'
_SLACK_HOSTS = ("hooks.slack.com", "hooks.slack-gov.com")


class NotSent(Exception):
    """A notice did not go out; the sentence names no secret of the user's."""


class NotSentNow(NotSent):
    """It may go out if it is tried again."""


def send_notice(guard: Invocation, notice: Notice) -> None:
    """Send a notice if the user wants notices and this one was not sent before; a failure is a warning."""
    settings = guard.config.settings.notify
    if not settings.is_set:
        return
    # A person is told even where guard cannot remember it.
    with suppress(GuardError, OSError), guard.writable_store.change() as change:
        if change.find_event(notice.event_id) is not None:
            return
        now = guard.clock.now()
        title = make_safe(notice, guard.repository.root.name, now).title
        change.append(
            NoticeSent(at=now, id=notice.event_id, run=notice.run, kind=notice.kind, title=title)
        )
    for delivery in _deliver(guard, settings, notice):
        if not delivery.sent:
            guard.output.warn(f"a notice was not sent by notify.{delivery.way}: {delivery.detail}")


def send_test(guard: Invocation) -> tuple[Delivery, ...]:
    """Send a test notice on every way that is set; nothing is recorded."""
    settings = guard.config.settings.notify
    if not settings.is_set:
        raise WrongUsage(
            "no way to send notices is set",
            "set notify.command, notify.url or notify.services in your own configuration",
        )
    return _deliver(guard, settings, TEST)


def _deliver(guard: Invocation, settings: NotifySettings, notice: Notice) -> tuple[Delivery, ...]:
    known = guard.repository_if_any
    report = make_safe(notice, known.root.name if known else "guard", guard.clock.now())
    ways: dict[Way, Callable[[], None]] = {}
    deadline = time.monotonic() + settings.timeout_seconds
    if settings.command is not None:
        command = settings.command
        ways["command"] = lambda: _run(command, report, guard.environ, deadline)
    if settings.url is not None:
        url = settings.url
        ways["url"] = lambda: _post(url, settings.format, report, deadline)
    if settings.services:
        ways["services"] = lambda: _send_by_apprise(settings.services, report)
    found: dict[Way, str] = {}
    threads = [
        threading.Thread(target=_try, args=(way, send, found), daemon=True)
        for way, send in ways.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = f"not done within {settings.timeout_seconds:g} s"
    said = {way: found.get(way, late) for way in ways}
    return tuple(Delivery(way=way, sent=not why, detail=why or "sent") for way, why in said.items())


def _try(way: Way, send: Callable[[], None], found: dict[Way, str]) -> None:
    # Whatever a way does, the others go on, and so does the run.
    try:
        send()
    except NotSent as error:
        found[way] = str(error)
    except Exception as error:
        found[way] = type(error).__name__
    else:
        found[way] = ""


def _run(command: str, report: NoticeReport, environ: Mapping[str, str], deadline: float) -> None:
    # The time that is left is guard's; the margin is for ending the command.
    left = max(0.1, deadline - time.monotonic() - 0.2)
    document = report.model_dump_json(by_alias=True).encode() + b"\n"
    shell = ["/bin/sh", "-c", _QUIETLY, "sh", command]
    # Outside of the repository, because an interpreter may load what lies in the current folder.
    done = run(shell, environ=environ, time_limit=left, cwd=os.sep, stdin=document)
    if done.code is None:
        raise NotSent("it did not end in time, and was killed")
    if done.code:
        raise NotSent(f"exit code {done.code}")


def _post(url: str, form: str, report: NoticeReport, deadline: float) -> None:
    host = urlsplit(url).hostname or ""
    if urlsplit(url).scheme not in ("http", "https") or not host:
        raise NotSent("the URL is not one of http or https")
    import requests
    from tenacity import (
        Retrying,
        retry_if_exception_type,
        stop_after_attempt,
        stop_before_delay,
        wait_exponential,
    )

    left = max(0.1, deadline - time.monotonic() - 0.2)
    retrying = Retrying(
        retry=retry_if_exception_type(NotSentNow),
        stop=stop_after_attempt(_MOST_ATTEMPTS) | stop_before_delay(left),
        wait=wait_exponential(multiplier=0.3, max=3),
        reraise=True,
    )

    def post() -> None:
        seconds = max(0.1, deadline - time.monotonic() - 0.2)
        content = _content(host, form, report)
        try:
            # Only the status is read. Nothing follows a redirection: the user named this address and no other.
            with requests.post(
                url, timeout=seconds, allow_redirects=False, stream=True, **content
            ) as answer:
                status = answer.status_code
        except requests.RequestException as error:
            raise NotSentNow(f"{host}: {type(error).__name__}") from None
        if status >= 500 or status == 429:
            raise NotSentNow(f"{host} answered {status}")
        if not 200 <= status < 300:
            raise NotSent(f"{host} answered {status}")

    retrying(post)


def _content(host: str, form: str, report: NoticeReport) -> dict[str, Any]:
    """Return what is posted, and its headers."""
    if form == "auto":
        form = "slack" if host in _SLACK_HOSTS else "ntfy" if host.startswith("ntfy.") else "json"
    if form == "slack":
        text = f"*{report.title}*\n{report.text}"
        for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            text = text.replace(mark, entity)
        return {"json": {"text": text}}
    if form == "ntfy":
        urgent = report.kind in ("blocked", "breaker")
        headers = {"Title": report.title.encode(), "Priority": "high" if urgent else "default"}
        return {"data": report.text.encode(), "headers": headers}
    return {"json": report.model_dump(mode="json", by_alias=True)}


def _send_by_apprise(services: tuple[str, ...], report: NoticeReport) -> None:
    try:
        import apprise
    except ImportError:
        raise NotSent("apprise is not installed: pip install 'completion-guard[notify]'") from None
    sender = apprise.Apprise()
    for number, service in enumerate(services, 1):
        if not sender.add(service):
            raise NotSent(f"apprise does not know service {number}")
    if not sender.notify(
        title=report.title, body=report.text, body_format=apprise.NotifyFormat.TEXT
    ):
        raise NotSent("a service refused it")
