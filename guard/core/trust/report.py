"""The report of `guard trust`: what the user trusts of the project's settings, and what comes of it."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Digest, Frozen, Instant, Oid, Report

TrustState = Literal["trusted", "edited", "untrusted", "revoked"]
FileState = Literal["trusted", "edited", "untrusted", "absent"]


class FileTrust(Frozen):
    """One file of the project's settings in the commit that was looked at."""

    file: str
    state: FileState
    """`absent` if the commit has no settings of guard there, and the user trusts none."""
    digest: Digest | None
    """Of the bytes of guard.toml, or of guard's table in pyproject.toml."""


class TrustedKey(Frozen):
    """A key that counts only where the user trusts the file."""

    key: str
    value: str | int | float | bool | tuple[str, ...] | None
    file: str


class TrustReport(Report):
    """What the user trusts of the project's settings."""

    schema_: Literal["guard/trust/1"] = Field("guard/trust/1", alias="schema")
    state: TrustState
    commit: Oid | None
    """The commit that was looked at: HEAD, or the one that was named; null before the first commit."""
    trusted_commit: Oid | None
    """The commit that the user trusted last, whatever was edited since; null if there is none."""
    trusted_at: Instant | None
    files: tuple[FileTrust, ...]
    keys: tuple[TrustedKey, ...]
    """The keys of that commit that need the user's trust."""
    uncommitted: tuple[str, ...]
    """The files of the work tree that are not as they are in that commit."""
    warnings: tuple[str, ...]
    record: str
    """The file that holds what the user trusts."""
