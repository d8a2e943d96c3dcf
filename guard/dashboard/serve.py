"""Start the server of the dashboard, and keep it up until Ctrl-C."""

import socket
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec

from guard.context.invocation import Invocation
from guard.core.base.text import plural
from guard.errors import GuardError, WrongUsage

_ADDRESS = "127.0.0.1"
_PACKAGES = ("starlette", "uvicorn")


def serve_dashboard(
    guard: Invocation, *, port: int = 0, read_only: bool = False, every: bool = False
) -> None:
    """Serve the pages about this workspace, or about every one in the index, to this machine alone."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise WrongUsage(
            f"the dashboard needs {plural(len(missing), 'package')} more: {', '.join(missing)}",
            "install guard with them: pip install 'completion-guard[web]'",
        )
    # Only here, because they take a fifth of a second to load, and no other command needs them.
    import uvicorn

    from guard.dashboard.app import Dashboard
    from guard.dashboard.keys import DashboardKeys
    from guard.dashboard.sites import find_sites

    guard.check_config()
    with _listen(port) as listener:
        keys, taken = DashboardKeys(), listener.getsockname()[1]
        sites = find_sites(guard, every=every)
        app = Dashboard(sites, keys, port=taken, read_only=read_only)
        config = uvicorn.Config(
            app.make_app(),
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        if not every:
            # A long log is read before a person waits for a page; what is wrong with it, the page tells.
            with suppress(GuardError, OSError):
                sites[0].seq()
        guard.output.result(f"http://{_ADDRESS}:{taken}/?token={keys.token}")
        guard.output.note(_about([site.name for site in sites], read_only=read_only))
        server.run(sockets=[listener])


def _about(names: Sequence[str], *, read_only: bool) -> str:
    shown = names[0] if len(names) == 1 else plural(len(names), "workspace")
    way = "nothing can be changed there" if read_only else "anyone with the address can act"
    return f"the dashboard of {shown}, for this machine alone; {way}; Ctrl-C ends it"


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_ADDRESS, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise WrongUsage(
            f"cannot listen on port {port}: {error.strerror}",
            "name another one with --port; without it, guard takes a free one",
        ) from None
    return listener
