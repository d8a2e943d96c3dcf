"""Tell all who share an account of its usage limit, by a lease that lasts until the reset.

Who shares the server of a workspace shares the lease, whatever the repository; with files, all repositories of the user on this
machine do.
"""

import os
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from guard.context.config import state_home
from guard.store.leases import FileLeases

if TYPE_CHECKING:
    from datetime import datetime

    from guard.context.invocation import Invocation

_MOST_SECONDS = 31 * 86400.0


def hold_account(guard: "Invocation", seconds: float) -> None:
    """Have all loops of the account named by the user pause for so long; without a name nothing happens."""
    name = _lease_name(guard)
    if name is None or seconds <= 0:
        return
    seconds = min(seconds, _MOST_SECONDS)
    if guard.workspace.server is not None:
        guard.writable_store.hold_lease(name, seconds)
        return
    home = state_home(guard.environ)
    os.makedirs(home.parent, mode=0o700, exist_ok=True)
    FileLeases(home).hold(name, seconds)


def account_seconds(guard: "Invocation") -> float:
    """Return for how long the account is held yet; 0 if it is free."""
    name = _lease_name(guard)
    if name is None:
        return 0.0
    if guard.workspace.server is None:
        return FileLeases(state_home(guard.environ)).seconds_left(name)
    from guard.store.postgres.store import PostgresStore

    store = guard.store
    assert isinstance(store, PostgresStore)
    return store.seconds_of_lease(name)


def account_free_at(guard: "Invocation") -> "datetime | None":
    """Return when the account is free again; None if it is."""
    left = account_seconds(guard)
    return guard.clock.now() + timedelta(seconds=left) if left > 0 else None


def _lease_name(guard: "Invocation") -> str | None:
    account = guard.users_config.settings.fleet.account
    return f"account-{sha256(account.encode()).hexdigest()[:32]}" if account else None
