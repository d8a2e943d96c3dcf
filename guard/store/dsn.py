"""Read the address of a PostgreSQL server without telling its password to anybody."""

from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from guard.core.base.first_use import dataclass

_SCHEMES = ("postgresql://", "postgres://")
_SECRETS = frozenset({"password", "sslpassword", "passfile_password"})
WORKSPACE = "guard_workspace"
"""The parameter with the name of the workspace in the database; guard takes it out before it connects."""


def is_dsn(given: str) -> bool:
    return given.startswith(_SCHEMES)


@dataclass(frozen=True)
class Dsn:
    """The address of a server: as it is given to the driver, as it may be shown, and the name of the workspace there."""

    text: str
    shown: str
    name: str | None
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Dsn({self.shown!r})"

    @property
    def has_password(self) -> bool:
        return bool(self.secrets)

    def hide(self, message: str) -> str:
        """Return the message without the password, should the driver have put it there."""
        for secret in self.secrets:
            for spelled in {secret, quote(secret, safe=""), quote(secret)}:
                message = message.replace(spelled, "…")
        return " ".join(message.split())


def parse_dsn(given: str) -> Dsn:
    """Raise ValueError, without a word of what was given, if it is no address."""
    try:
        parts = urlsplit(given)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ValueError("it is not a URL") from None
    if "\0" in unquote(given) or parts.fragment:
        raise ValueError("it has a NUL character or a fragment")
    user, at, host = parts.netloc.rpartition("@")
    name, colon, password = user.partition(":")
    secrets = [unquote(password)] if colon and password else []
    secrets += [value for key, value in pairs if key in _SECRETS and value]
    own = [value for key, value in pairs if key == WORKSPACE]
    to_driver = [(key, value) for key, value in pairs if key != WORKSPACE]
    to_people = [(key, value) for key, value in pairs if key not in _SECRETS]
    return Dsn(
        text=urlunsplit(parts._replace(query=urlencode(to_driver))),
        shown=urlunsplit(parts._replace(netloc=f"{name}{at}{host}", query=urlencode(to_people))),
        name=own[-1] if own and own[-1] else None,
        secrets=tuple(secrets),
    )
