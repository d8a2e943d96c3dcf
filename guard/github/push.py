"""Push rescued commits to their own branch, from a repository that no agent has configured."""

import re
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from guard.core.check.report import CheckReport
from guard.core.github.report import Push
from guard.core.rescue.redact import redact
from guard.errors import GuardError
from guard.git.locate import Repository
from guard.git.run import run_git
from guard.github.environment import JobEnvironment

TIME_LIMIT_SECONDS = 120.0
_PROTOCOLS = ("https", "http", "file")
_OWN = re.compile(r"refs/heads/guard/rescue/[A-Za-z0-9_-]{1,200}")


def rescue_place(check: CheckReport | None) -> tuple[str, str] | None:
    """Return the last rescued commit and the full name of its branch; None if nothing was rescued."""
    if check is None or check.rescue is None or not check.rescue.commits:
        return None
    branch = check.rescue.branch or f"guard/rescue/{check.run}-{check.iteration}"
    name = branch if branch.startswith("refs/heads/") else f"refs/heads/{branch}"
    return check.rescue.commits[-1], name


def push_rescue(
    repository: Repository | None,
    job: JobEnvironment,
    check: CheckReport | None,
    *,
    is_wanted: bool,
    token: str,
) -> Push:
    """Push the rescued commits if the user asked for it and it is permitted; otherwise return why not."""
    place = rescue_place(check)
    if place is None:
        return Push(ref=None, pushed=False, why="nothing_rescued", detail="")
    assert check is not None
    assert check.rescue is not None
    local = check.rescue.branch and place[1]

    def skip_push(why: str, detail: str) -> Push:
        return Push(ref=local or None, pushed=False, why=why, detail=detail)

    if not is_wanted:
        return skip_push("not_asked", "push-rescue was not asked for")
    if job.from_fork:
        return skip_push("fork", "the pull request comes from a fork, which may not write here")
    if not token or job.repository is None or repository is None:
        return skip_push("no_token", "there is no token or no repository to push to")
    if not _OWN.fullmatch(place[1]):
        # The agent can write to the report, and must not reach another branch with the token.
        return skip_push(
            "refused", "the report names a branch that guard did not make for a rescue"
        )
    try:
        refusal = _push(repository, job, *place, token)
    except GuardError as error:
        refusal = error.message
    if refusal is not None:
        return skip_push("refused", redact(refusal, (token,)))
    return Push(ref=place[1], pushed=True, why="pushed", detail="")


def _push(
    repository: Repository, job: JobEnvironment, commit: str, name: str, token: str
) -> str | None:
    # Returns git's message if the push failed. The agent can edit the project's configuration, the user's configuration and
    # the hooks, and could send the token elsewhere. So guard pushes from an empty repository that borrows the project's
    # objects.
    server = job.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    folder = Path(tempfile.mkdtemp(prefix="guard-push-"))
    try:
        own = _make_repository(repository, folder, job.environ)
        done = run_git(
            "push",
            "--quiet",
            "--no-verify",
            f"{server}/{job.repository}",
            f"{commit}:{name}",
            environ=job.agent_environ(),
            git_dir=own,
            time_limit=TIME_LIMIT_SECONDS,
            extra=_git_variables(server, token),
        )
        return None if done.code == 0 else done.stderr.decode(errors="replace").strip()[-500:]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_repository(repository: Repository, folder: Path, environ: Mapping[str, str]) -> Path:
    own, theirs = folder / "push.git", repository.common_dir
    run_git("init", "--quiet", "--bare", str(own), environ=environ, extra={"GIT_TEMPLATE_DIR": ""})
    (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (own / "objects" / "info" / "alternates").write_text(f"{theirs / 'objects'}\n")
    if (theirs / "shallow").is_file():
        shutil.copyfile(theirs / "shallow", own / "shallow")
    return own


def _git_variables(server: str, token: str) -> dict[str, str]:
    # The token is passed as git configuration in the environment, because every process can read command lines.
    user = b64encode(f"x-access-token:{token}".encode()).decode()
    settings = {"http.followRedirects": "false", "push.gpgSign": "false"}
    if urlsplit(server).scheme in ("https", "http"):
        settings[f"http.{server}/.extraheader"] = f"AUTHORIZATION: basic {user}"
    variables = {
        "GIT_ALLOW_PROTOCOL": ":".join(_PROTOCOLS),
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
