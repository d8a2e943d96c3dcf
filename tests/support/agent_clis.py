"""The real Claude Code, Codex, Gemini CLI and Qwen Code, as a person sets them up for unattended work.

They see an environment and an empty home of their own, dummy keys and one address, 127.0.0.1: what they send elsewhere goes
to a proxy that is not there. Telemetry and updates are off.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support import PATIENT, Result, write
from tests.support.model import Reply, call
from tests.support.sessions import ending

_SESSION: re.Pattern[str] = re.compile(r'"(?:session_id|thread_id)":"([0-9a-f-]{36})"')
_SECONDS = 180
"""For a session from start to end, on a machine that has much else to do."""
_NOWHERE = "http://127.0.0.1:9"
_CODEX_CONFIG = """\
model = "scripted"
model_provider = "loopback"
check_for_update_on_startup = false
[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
env_key = "LOOPBACK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[analytics]
enabled = false
"""


@dataclass(frozen=True)
class AgentCli:
    """One CLI: its environment, how a session with machine-readable output is started, and where it keeps its sessions."""

    name: str
    environ: Mapping[str, str]
    command: tuple[str, ...]
    shell_tool: tuple[str, str]
    sessions: Path

    def shell(self, command: str, **more: object) -> Reply:
        """The model calls this CLI's shell tool."""
        tool, argument = self.shell_tool
        return call(tool, **{argument: command, **more})

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> Result:
        """A session from start to end, in the current folder."""
        return self.call(*self.command, *words, env=env)

    def call(self, *argv: str, env: Mapping[str, str] | None = None) -> Result:
        """Any command of the CLI, run to its end."""
        with self.started(argv, env) as process:
            out, err = process.communicate(timeout=_SECONDS)
        return Result(process.returncode, out, err)

    @contextmanager
    def started(
        self, argv: Sequence[str], env: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        """A running command in a process group of its own, which ends with the block."""
        environ = {**self.environ, **(env or {})}
        program = shutil.which(argv[0], path=environ["PATH"]) or argv[0]
        process = subprocess.Popen(
            [program, *argv[1:]],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with ending(process):
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def session_in(output: str) -> str:
    """The id of the session that printed this."""
    found = _SESSION.search(output)
    assert found, output
    return found[1]


def claude(programs: Path, home: Path, url: str) -> AgentCli:
    """Claude Code, which takes the model's address from its environment."""
    environ = {
        **_environ(programs, home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
    }
    stream = ("--output-format", "stream-json", "--verbose")
    return AgentCli(
        name="claude",
        environ=environ,
        command=("claude", "-p", *stream, "--dangerously-skip-permissions"),
        shell_tool=("Bash", "command"),
        sessions=home / ".claude" / "projects",
    )


def codex(programs: Path, home: Path, url: str) -> AgentCli:
    """Codex, which takes the model's address from its config file."""
    write(home / ".codex" / "config.toml", _CODEX_CONFIG.format(url=url))
    return AgentCli(
        name="codex",
        environ={**_environ(programs, home), "LOOPBACK_KEY": "dummy"},
        command=("codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox"),
        shell_tool=("exec_command", "cmd"),
        sessions=home / ".codex" / "sessions",
    )


def gemini(programs: Path, home: Path, url: str) -> AgentCli:
    """Gemini CLI with a model by name: without one it asks another model which to take."""
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    write(home / ".gemini" / "settings.json", json.dumps(settings))
    environ = {
        **_environ(programs, home),
        "GEMINI_API_KEY": "dummy",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GOOGLE_GEMINI_BASE_URL": url,
    }
    stream = ("-m", "gemini-2.5-flash", "-o", "stream-json", "--approval-mode", "yolo")
    return AgentCli(
        name="gemini",
        environ=environ,
        command=("gemini", *stream, "-p"),
        shell_tool=("run_shell_command", "command"),
        sessions=home / ".gemini" / "tmp",
    )


def qwen(programs: Path, home: Path, url: str) -> AgentCli:
    """Qwen Code with a model of the OpenAI kind."""
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    write(home / ".qwen" / "settings.json", json.dumps(settings))
    environ = {
        **_environ(programs, home),
        "OPENAI_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "scripted",
    }
    return AgentCli(
        name="qwen",
        environ=environ,
        command=("qwen", "-o", "stream-json", "--approval-mode", "yolo", "-p"),
        shell_tool=("run_shell_command", "command"),
        sessions=home / ".qwen" / "projects",
    )


def _environ(programs: Path, home: Path) -> dict[str, str]:
    needed = [os.path.dirname(shutil.which(name) or "") for name in ("node", "git")]
    scratch = home / "tmp"
    scratch.mkdir(exist_ok=True)
    return {
        "PATH": os.pathsep.join([str(programs), *needed, "/usr/bin", "/bin"]),
        "HOME": str(home),
        "TMPDIR": str(scratch),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "HTTP_PROXY": _NOWHERE,
        "HTTPS_PROXY": _NOWHERE,
        "NO_PROXY": "127.0.0.1",
        **PATIENT,
    }
