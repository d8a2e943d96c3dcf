"""Decide whether a request to the dashboard comes from its own pages, or from a page of another site."""

from dataclasses import dataclass

_NAMES = ("127.0.0.1", "localhost")
_SAFE = ("GET", "HEAD")


@dataclass(frozen=True)
class Knock:
    """What a browser says of a request; each header is None if it is missing."""

    method: str
    hosts: tuple[str, ...]
    """All headers of this name: two of them may mean two things to two programs."""
    origin: str | None = None
    fetch_site: str | None = None
    fetch_mode: str | None = None
    fetch_dest: str | None = None


def own_hosts(port: int) -> tuple[str, ...]:
    """Return what browsers call this server; any other name leads here by the answer of a foreign name server."""
    plain = _NAMES if port == 80 else ()
    return (*(f"{name}:{port}" for name in _NAMES), *plain)


def find_refusal(knock: Knock, port: int) -> str | None:
    """Say why the request is refused, with or without a token; None if it may go on to be asked for its token."""
    hosts = own_hosts(port)
    if len(knock.hosts) != 1 or knock.hosts[0].lower() not in hosts:
        return "the Host header names another server"
    if knock.origin is not None and knock.origin not in {f"http://{host}" for host in hosts}:
        return "the request comes from a page of another origin"
    if knock.method not in _SAFE and knock.origin is None:
        return "the request does not say which page it comes from (Origin)"
    if knock.fetch_site in ("cross-site", "same-site") and not _is_visit(knock):
        return "the request comes from a page of another site"
    return None


def _is_visit(knock: Knock) -> bool:
    # A link elsewhere may lead here; nothing elsewhere may load a part of a page, or show one in a frame.
    opens = knock.fetch_mode == "navigate" and knock.fetch_dest == "document"
    return opens and knock.method in _SAFE
