"""Whether the user signs commits, and how: by the user's own configuration, never by the repository's.

A program that signs is a program that runs, and the repository's configuration is the agent's to edit.
"""

import os
from collections.abc import Mapping
from contextlib import suppress

from guard.errors import RepositoryProblem
from guard.git.call import users_config_value

_PROGRAMS = {"openpgp": "gpg.program", "ssh": "gpg.ssh.program", "x509": "gpg.x509.program"}
_USUAL = {"openpgp": "gpg", "ssh": "ssh-keygen", "x509": "gpgsm"}


def signing_words(environ: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Options for git, and options for the command that commits; None if the user does not sign."""
    with suppress(RepositoryProblem):
        if users_config_value("commit.gpgSign", environ, "bool") != "true":
            return None
        form = users_config_value("gpg.format", environ) or "openpgp"
        if form not in _PROGRAMS:
            return None
        program = users_config_value(_PROGRAMS[form], environ) or _USUAL[form]
        key = users_config_value("user.signingKey", environ) or ""
        told = {"gpg.format": form, _PROGRAMS[form]: os.path.expanduser(program)}
        if form == "openpgp":
            told["gpg.openpgp.program"] = told["gpg.program"]
        settings = (word for name, value in told.items() for word in ("-c", f"{name}={value}"))
        return tuple(settings), (f"--gpg-sign={key}" if key else "--gpg-sign",)
    return None
