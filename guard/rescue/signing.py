"""Whether the user signs commits, and how: by the user's own configuration, never by the repository's.

A program that signs is a program that runs, and the repository's configuration is the agent's to edit. So the key is always
named: git would ask the repository for it.
"""

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from guard.errors import RepositoryProblem
from guard.git.run import users_config_value
from guard.system.processes import run

_PROGRAMS = {
    "openpgp": ("gpg.openpgp.program", "gpg.program"),
    "ssh": ("gpg.ssh.program",),
    "x509": ("gpg.x509.program",),
}
_USUAL = {"openpgp": "gpg", "ssh": "ssh-keygen", "x509": "gpgsm"}
_KEY_SECONDS = 10.0


class Signing(NamedTuple):
    """What git has to be told: options of its own, and the key; without one nothing can be signed."""

    settings: tuple[str, ...]
    key: str


def signing(environ: Mapping[str, str], committer: str) -> Signing | None:
    """How the user signs; None if the user does not."""
    with suppress(RepositoryProblem, OSError, ValueError):
        if users_config_value("commit.gpgSign", environ, "bool") != "true":
            return None
        form = users_config_value("gpg.format", environ) or "openpgp"
        if form not in _PROGRAMS:
            return None
        key = users_config_value("user.signingKey", environ) or _usual_key(form, environ, committer)
        told = (users_config_value(name, environ) for name in _PROGRAMS[form])
        program = os.path.expanduser(next(filter(None, told), _USUAL[form]))
        options = {"gpg.format": form, **dict.fromkeys(_PROGRAMS[form], program)}
        settings = (word for name, value in options.items() for word in ("-c", f"{name}={value}"))
        return Signing(tuple(settings), key or "")
    return None


def _usual_key(form: str, environ: Mapping[str, str], committer: str) -> str | None:
    """What git takes where no key is set: the committer's, or for ssh what the user's own command says."""
    if form != "ssh":
        return committer
    command = users_config_value("gpg.ssh.defaultKeyCommand", environ)
    if command is None:
        return None
    done = run(shlex.split(command), environ=environ, time_limit=_KEY_SECONDS, leaves_nothing=True)
    line = done.stdout.decode(errors="replace").partition("\n")[0].strip()
    return line if done.code == 0 and line.startswith(("key::", "ssh-", "ecdsa-", "sk-")) else None
