"""The pages of the dashboard, and the checks that every request passes first."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guard.core.base.text import is_id
from guard.core.dashboard.access import Knock, find_refusal
from guard.core.report.document import NightReport
from guard.dashboard import act
from guard.dashboard.keys import DashboardKeys
from guard.dashboard.live import LogWatch
from guard.dashboard.workspace import ShownWorkspace
from guard.errors import GuardError, Refused, StoreUnavailable
from guard.report.page import page_parts, read_style, templates

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    # With `no-referrer` a browser would not say which page a form comes from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_STATIC = {
    "htmx.min.js": "text/javascript",
    "htmx.LICENSE.txt": "text/plain",
    "dashboard.js": "text/javascript",
    "dashboard.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_MOST_RUNS = 200
_MOST_FORM_BYTES = 64 * 1024


class Doorkeeper:
    """Lets a request in that comes from this server's own pages and has the token; all answers get the same headers."""

    def __init__(self, app: ASGIApp, keys: DashboardKeys, port: int) -> None:
        self._app, self._keys, self._port = app, keys, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), text.encode()) for name, text in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        answer = self._answer(Request(scope)) or self._app
        await answer(scope, receive, send_guarded)

    def _answer(self, request: Request) -> Response | None:
        headers = request.headers
        knock = Knock(
            request.method,
            tuple(headers.getlist("host")),
            ", ".join(headers.getlist("origin")) if "origin" in headers else None,
            headers.get("sec-fetch-site"),
            headers.get("sec-fetch-mode"),
            headers.get("sec-fetch-dest"),
        )
        refusal = find_refusal(knock, self._port)
        if refusal is not None:
            return _refuse(refusal)
        given = request.query_params.getlist("token")
        if given:
            return self._exchange(given, request.method)
        if not self._is_known(headers, request.cookies):
            return _refuse("open the address that `guard dashboard` printed: it has the token")
        return None

    def _is_known(self, headers: Headers, cookies: Mapping[str, str]) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._keys.is_token(token.strip())
        return self._keys.is_cookie(cookies.get(self._keys.cookie_name(self._port), ""))

    def _exchange(self, given: list[str], method: str) -> Response:
        # The token leaves the address at once, so that no history and no screenshot keeps it.
        if len(given) != 1 or method not in ("GET", "HEAD") or not self._keys.is_token(given[0]):
            return _refuse("the token is wrong; `guard dashboard` prints a new one at each start")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self._keys.cookie_name(self._port),
            self._keys.cookie,
            httponly=True,
            samesite="strict",
            path="/",
        )
        return answer


def _refuse(why: str) -> Response:
    return Response(f"guard: {why}\n", status_code=403, media_type="text/plain")


class Dashboard:
    """The pages about these workspaces."""

    def __init__(
        self, sites: Iterable[ShownWorkspace], keys: DashboardKeys, *, port: int, read_only: bool
    ) -> None:
        self.sites = {site.key: site for site in sites}
        self.keys, self.port, self.read_only = keys, port, read_only
        self._watches = {key: LogWatch(site) for key, site in self.sites.items()}

    def make_app(self) -> Starlette:
        routes = [
            Route("/", self.start),
            Route("/static/{name}", self.static),
            Route("/w/{site}/", self.overview),
            Route("/w/{site}/run/{run}", self.run),
            Route("/w/{site}/run/{run}/{number:int}", self.iteration),
            Route("/w/{site}/agents", self.agents),
            Route("/w/{site}/plan", self.plan),
            Route("/w/{site}/log", self.log),
            Route("/w/{site}/breaker", self.set_breaker, methods=["POST"]),
            Route("/w/{site}/answer", self.answer, methods=["POST"]),
            Route("/w/{site}/run/{run}/stop", self.stop, methods=["POST"]),
            Route("/w/{site}/news", self.news),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(Doorkeeper, keys=self.keys, port=self.port)],
            exception_handlers={
                GuardError: self._tell_failure,
                OSError: self._tell_failure,
                HTTPException: self._tell_failure,
            },
        )

    def start(self, request: Request) -> Response:
        if len(self.sites) == 1:
            return RedirectResponse(f"/w/{next(iter(self.sites))}/", status_code=303)
        found: list[tuple[ShownWorkspace, NightReport | None, str | None]] = []
        for site in self.sites.values():
            try:
                found.append((site, site.report(), None))
            except (GuardError, OSError) as error:
                found.append((site, None, _message(error)))
        return self._page(request, "sites.html.j2", None, found=found)

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == "style.css":
            return Response(read_style(), media_type="text/css")
        if name not in _STATIC:
            raise HTTPException(404)
        return Response(_read_static(name), media_type=_STATIC[name])

    def overview(self, request: Request) -> Response:
        site = self._site(request)
        with site.reading() as read:
            runs = sorted(read.night.runs.values(), key=lambda run: run.began, reverse=True)
            newest: dict[str, Any] = {}
            counts: dict[str, int] = {}
            for each in read.night.in_order():
                newest[each.run] = each
                counts[each.run] = counts.get(each.run, 0) + 1
        return self._page(
            request,
            "overview.html.j2",
            site,
            **page_parts(site.report(), {}),
            runs=site.redact_plain([_run_line(each, newest, counts) for each in runs[:_MOST_RUNS]]),
            under_way=set(act.running(site)),
            breakers=site.breakers(),
            questions=site.questions(),
            more_runs=max(0, len(runs) - _MOST_RUNS),
        )

    def run(self, request: Request) -> Response:
        site, run = self._site(request), self._id(request, "run")
        report = site.report(run)
        return self._page(
            request,
            "run.html.j2",
            site,
            **page_parts(report, site.details(run, report)),
            run=run,
            is_running=run in act.running(site),
        )

    def iteration(self, request: Request) -> Response:
        site, run = self._site(request), self._id(request, "run")
        number = request.path_params["number"]
        facts = site.iteration(run, number)
        show = site.show(run, number)
        policy, judged, problem = site.judge_again(run, number, dict(request.query_params))
        with site.reading() as read:
            numbers = [each for of, each in read.night.iterations if of == run]
        return self._page(
            request,
            "iteration.html.j2",
            site,
            # What was judged again stays in sight; another check of it shows at the next visit.
            settled=show is not None,
            show=show,
            settings=policy,
            judged=judged,
            judge_problem=problem,
            facts=facts,
            run=run,
            number=number,
            before=max((each for each in numbers if each < number), default=None),
            after=min((each for each in numbers if each > number), default=None),
        )

    def agents(self, request: Request) -> Response:
        site = self._site(request)
        return self._page(request, "agents.html.j2", site, **page_parts(site.report(), {}))

    def plan(self, request: Request) -> Response:
        site = self._site(request)
        parts = page_parts(site.report(), {})
        return self._page(request, "plan.html.j2", site, **parts, questions=site.questions())

    def log(self, request: Request) -> Response:
        site = self._site(request)
        last, asked = site.seq(), _number(request, "at")
        # A slider at its end stays at the end while the log grows.
        follows = asked is None or asked >= (_number(request, "last") or last)
        at = last if asked is None or follows else max(1, asked)
        parts: dict[str, Any] = {"at": at, "last": last}
        if last:
            moment, facts, events = site.look_at(at)
            parts |= {"moment_of": f"{moment.at:%Y-%m-%d %H:%M:%S}", "type": moment.type}
            parts |= {"facts": facts, "events": events}
        return self._page(request, "log.html.j2", site, **parts)

    async def set_breaker(self, request: Request) -> Response:
        site, form = self._site(request), await self._form(request)
        what, worktree = form.get("do", ""), form.get("worktree", "")
        await run_in_threadpool(act.change_breaker, site, what, worktree)
        return _back(site)

    async def stop(self, request: Request) -> Response:
        site, run = self._site(request), self._id(request, "run")
        await self._form(request)
        await run_in_threadpool(act.stop_run, site, run)
        return _back(site)

    async def answer(self, request: Request) -> Response:
        site, form = self._site(request), await self._form(request)
        question, text = form.get("question", ""), form.get("text", "")
        run, _, number = question.partition("/")
        if number:
            # An id of the plan's has no slash.
            if not (is_id(run) and number.isascii() and number.isdigit() and len(number) < 10):
                raise HTTPException(404)
            await run_in_threadpool(act.answer_iteration, site, run, int(number), text)
        else:
            await run_in_threadpool(act.answer_question, site, question, text)
        return _back(site)

    async def _form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form of this dashboard's own pages."""
        if self.read_only:
            raise HTTPException(403, "this dashboard only shows: it was started with --read-only")
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_FORM_BYTES:
                raise HTTPException(413, "that is too much")
        fields = parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
        form = dict(fields)
        if len(form) != len(fields) or not self.keys.is_form_token(form.pop("token", "")):
            raise HTTPException(
                403, "the form has not the token of this dashboard: load its page again"
            )
        return form

    async def news(self, request: Request) -> Response:
        watch = self._watches[self._site(request).key]
        return StreamingResponse(watch.stream(), media_type="text/event-stream")

    def _site(self, request: Request) -> ShownWorkspace:
        site = self.sites.get(request.path_params["site"])
        if site is None:
            raise HTTPException(404)
        return site

    def _id(self, request: Request, name: str) -> str:
        text: str = request.path_params[name]
        if not is_id(text):
            raise HTTPException(404)
        return text

    def _page(
        self,
        request: Request,
        name: str,
        site: ShownWorkspace | None,
        /,
        *,
        status: int = 200,
        settled: bool = False,
        **parts: Any,
    ) -> Response:
        text = (
            page_templates()
            .get_template(name)
            .render(
                **parts,
                site=site,
                several=len(self.sites) > 1,
                here=_here(request),
                seq=site.seq() if site is not None and status == 200 else 0,
                is_live=status == 200,
                is_settled=settled,
                read_only=self.read_only,
                form_token=self.keys.form_token,
            )
        )
        return HTMLResponse(text.encode(errors="replace"), status_code=status)

    def _tell_failure(self, request: Request, error: Exception) -> Response:
        status = _status(error)
        if isinstance(error, GuardError) and request.method == "POST":
            status = 409
        site = self.sites.get(request.path_params.get("site", ""))
        hint = error.hint if isinstance(error, GuardError) else None
        return self._page(
            request,
            "failure.html.j2",
            site,
            status=status,
            message=_message(error),
            hint=hint,
        )


def _back(site: ShownWorkspace) -> Response:
    return RedirectResponse(f"/w/{site.key}/", status_code=303)


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _here(request: Request) -> str:
    # The place on the slider goes with the form that has it.
    is_log = request.url.path.endswith("/log")
    query = f"?{request.url.query}" if request.url.query and not is_log else ""
    return f"{quote(request.url.path)}{query}"


def _status(error: Exception) -> int:
    match error:
        case HTTPException():
            return error.status_code
        case Refused():
            return 404
        case StoreUnavailable():
            return 503
        case _:
            return 500


def _message(error: Exception) -> str:
    match error:
        case GuardError():
            return error.message
        case HTTPException():
            return "there is no such page" if error.status_code == 404 else error.detail
        case OSError():
            return error.strerror or str(error)
        case _:
            return str(error)


def _run_line(run: Any, newest: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Any]:
    last = newest.get(run.run)
    return {
        "run": run.run,
        "began": f"{run.began:%Y-%m-%d %H:%M}",
        "ended": run.end_reason if run.ended is not None else "",
        "is_over": run.ended is not None,
        "command": " ".join(run.command),
        "iterations": counts.get(run.run, 0),
        "status": (last.status or "open") if last is not None else "",
        "why": (last.words or last.detail or last.reason) if last is not None else "",
    }


@cache
def page_templates() -> Environment:
    """Return the templates of the dashboard, which take the parts of the report in."""
    loaders = ChoiceLoader([PackageLoader("guard.dashboard"), PackageLoader("guard.report")])
    return templates().overlay(loader=loaders)


@cache
def _read_static(name: str) -> bytes:
    return (files("guard.dashboard") / "static" / name).read_bytes()
