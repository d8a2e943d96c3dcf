"""Programs, variables and files that an agent plants where programs are looked up: controls run them, guard does not.

All are planted at once, each leaves its own mark, and every command runs once over the whole set. What guard starts is
recorded, so that a command that starts a program in another way than `guard.system.programs` says is found out.
"""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from guard.cli import COMMANDS
from guard.system.programs import own_guard
from tests.support import ROOT, TIME_LIMIT, commit, git, new_repository, run, write
from tests.support.sessions import QUICK, answering, script, until
from tests.support.tmux_server import TmuxServer

SESSION = "0b3f1c9e-6a51-4d6e-9f0b-0a4d8d1f2c11"
NAMES = (
    *("git", "tmux", "ps", "sysctl", "ioreg", "uname", "hostname", "id", "ifconfig", "ldconfig"),
    *("claude", "codex", "gemini", "qwen", "opencode", "copilot", "gh", "usage", "bring", "keeper"),
    *("gpg", "gpgsm", "ssh", "ssh-keygen", "git-remote-https", "pinentry"),
    *("sh", "bash", "env", "python", "python3", "node", "npm", "perl", "guard", "completion-guard"),
    *("ln", "cmp", "mv", "rm", "cat", "less", "vi", "nano", "editor", "notify-send"),
)
"""What guard starts, what those programs start in turn, and what a library might start without being asked."""
INTERPRETERS = {
    "claude": "node",
    "codex": "bash",
    "gemini": "python3",
    "qwen": "perl",
    "opencode": "sh",
}


MODULES = (
    *("encodings/__init__.py", "sitecustomize.py", "usercustomize.py", "json/__init__.py"),
    *("guard.py", "click.py", "rich/__init__.py", "pydantic.py", "tenacity.py"),
)


def plant(folder: Path, way: str, marks: Path) -> Path:
    """Put a program of every name into a folder; each says how it was found."""
    for name in NAMES:
        script(folder / name, f"echo '{name}: {way}' >> {shlex.quote(str(marks))}\nexit 1")
    return folder


@dataclass(frozen=True)
class Planted:
    """A repository in which everything is planted, and the shell of a user who does not know."""

    root: Path
    linked: Path
    tools: Path
    """The only folder with the agent CLIs that the user has installed."""
    marks: Path
    ways: Mapping[str, str]
    """The entries of the search path that lead to what is planted."""
    variables: Mapping[str, str]

    @property
    def path(self) -> str:
        return os.pathsep.join([*self.ways.values(), str(self.tools), os.environ["PATH"]])

    def ran(self) -> list[str]:
        return sorted(set(self.marks.read_text().splitlines())) if self.marks.exists() else []


def plant_ways(root: Path, linked: Path, outside: Path, marks: Path) -> dict[str, str]:
    """The entry of the search path for each way that leads into a repository."""
    venv = plant(root / ".venv/bin", "virtual environment", marks)
    plant(root, "current folder", marks)
    plant(root / "bin", "relative", marks)
    folder, files = outside / "folder", outside / "files"
    folder.symlink_to(plant(root / "link/bin", "linked folder", marks))
    files.mkdir()
    for name in NAMES:
        (files / name).symlink_to(plant_one(root / "files" / name, name, marks))
    inner = new_repository(root / "inner", "x.txt")
    other = new_repository(outside / "other", "x.txt")
    return {
        "virtual environment": str(venv),
        "relative": "bin",
        "current folder": ".",
        "empty": "",
        "up and down": f"{plant(root / 'again', 'up and down', marks)}/../again",
        "node modules": str(plant(root / "node_modules/.bin", "node modules", marks)),
        "linked folder": str(folder),
        "linked files": str(files),
        "linked work tree": str(plant(linked / ".venv/bin", "linked work tree", marks)),
        "git directory": str(plant(root / ".git/bin", "git directory", marks)),
        "inner repository": str(plant(inner / "bin", "inner repository", marks)),
        "another repository": str(plant(other / "bin", "another repository", marks)),
    }


def plant_one(path: Path, name: str, marks: Path) -> Path:
    script(path, f"echo '{name}: linked files' >> {shlex.quote(str(marks))}\nexit 1")
    return path


def python_mark(marks: Path, text: str) -> str:
    """Lines that leave a mark even while Python is only starting."""
    flags = "posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND"
    opened = f"posix.open({os.fsencode(marks)!r}, {flags}, 0o600)"
    return f"import posix\nposix.write({opened}, {text.encode()!r} + b'\\n')\nposix._exit(0)\n"


def plant_variables(root: Path, marks: Path) -> dict[str, str]:
    """Variables that make interpreters, the loader and git run something of the repository's."""
    hostile = root / "hostile"

    def shell(name: str) -> str:
        return f"echo 'variable: {name}' >> {shlex.quote(str(marks))}"

    def python(name: str) -> str:
        return python_mark(marks, f"variable: {name}")

    write(hostile / "bash_env", shell("BASH_ENV") + "\n")
    write(hostile / "python/sitecustomize.py", python("PYTHONPATH"))
    write(hostile / "gpg.conf", f"agent-program {hostile}/EDITOR\n")
    write(hostile / "start.py", python("PYTHONSTARTUP"))
    write(
        hostile / "load.js",
        f"require('fs').appendFileSync({json.dumps(str(marks))}, 'variable: NODE_OPTIONS\\n');\n",
    )
    perl = f"open(F, '>>', '{marks}'); print F \"variable: PERL5OPT\\n\"; close F; 1;\n"
    write(hostile / "perl/Planted.pm", perl)
    for name in ("EDITOR", "PAGER", "SSH_ASKPASS", "SHELL"):
        script(hostile / name, shell(name))
    found = {
        "PYTHONPATH": "hostile/python",
        "BASH_ENV": "hostile/bash_env",
        "BASH_FUNC_test%%": f"() {{ {shell('BASH_FUNC')}; }}",
        "PYTHONSTARTUP": str(hostile / "start.py"),
        "NODE_OPTIONS": "--require ./hostile/load.js",
        "PERL5LIB": f"{hostile}/perl",
        "PERL5OPT": "-MPlanted",
        **{name: str(hostile / name) for name in ("EDITOR", "PAGER", "SSH_ASKPASS", "SHELL")},
        "GNUPGHOME": str(hostile),
        "GIT_PAGER": str(hostile / "PAGER"),
        "GIT_EDITOR": str(hostile / "EDITOR"),
        "GIT_ASKPASS": str(hostile / "SSH_ASKPASS"),
    }
    if sys.platform == "linux":
        found["LD_PRELOAD"] = str(build_library(hostile, "LD_PRELOAD", marks))
        found["LD_LIBRARY_PATH"] = str(hostile)
    return found


def build_library(folder: Path, name: str, marks: Path) -> Path:
    text = f"variable: {name}\\n"
    source = f"""
        #include <fcntl.h>
        #include <string.h>
        #include <unistd.h>
        __attribute__((constructor)) static void planted(void) {{
            int file = open("{marks}", O_WRONLY | O_CREAT | O_APPEND, 0600);
            if (write(file, "{text}", strlen("{text}")) < 0) _exit(9);
            close(file);
        }}
    """
    library = folder / f"{name}.so"
    words = ["cc", "-shared", "-fPIC", "-o", str(library), str(write(folder / "x.c", source))]
    subprocess.run(words, check=True, timeout=TIME_LIMIT)
    return library


def plant_files(root: Path, marks: Path) -> None:
    """Files that a program finds because it runs in the repository."""

    def python(name: str) -> str:
        return python_mark(marks, f"file: {name}")

    for name in MODULES:
        write(root / name, python(name))
    # As agent CLIs read the settings of the folder that they run in, which name programs.
    script(root / ".settings", f"echo 'file: .settings' >> {shlex.quote(str(marks))}")
    write(root / ".tmux.conf", f"run-shell \"echo 'file: .tmux.conf' >> {marks}\"\n")


CLI = {
    "node": f"""
const fs = require('fs'), child = require('child_process');
if (!process.argv.includes('--version'))
    console.log(JSON.stringify({{type: 'system', subtype: 'init', session_id: '{SESSION}'}}));
else if (fs.existsSync('.settings')) child.execFileSync('./.settings');
else console.log('2.1.0');
""",
    "python3": """
import os, sys
"--version" in sys.argv and os.path.exists(".settings") and os.system("./.settings")
print("2.1.0")
""",
    "perl": "system('./.settings') if \"@ARGV\" =~ /--version/ && -e '.settings';\nprint '2.1.0';\n",
    "bash": '[ "$1" != --version ] || [ ! -e .settings ] || ./.settings\ntest 1 = 1\necho 2.1.0\n',
    "sh": '[ "$1" != --version ] || [ ! -e .settings ] || ./.settings\necho 2.1.0\n',
}
"""Agent CLIs: asked for their version they read the settings of the folder; a probe tells the real ones not to."""


def install_tools(folder: Path) -> Path:
    """The agent CLIs of the user, each in another language, started as npm and pip have them started."""
    for name, interpreter in INTERPRETERS.items():
        text = f"#!/usr/bin/env {interpreter}\n{CLI[interpreter]}"
        write(folder / name, text).chmod(0o755)
    return folder


@pytest.fixture
def planted(repository: Path, tmp_path: Path) -> Planted:
    commit(repository, "first.txt")
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    outside, marks = tmp_path / "outside", tmp_path / "marks"
    outside.mkdir()
    ways = plant_ways(repository, tmp_path / "linked", outside, marks)
    plant_files(repository, marks)
    write(repository / ".git/info/exclude", "*\n!/work*\n")
    variables = plant_variables(repository, marks)
    tools = install_tools(tmp_path / "tools")
    return Planted(repository, tmp_path / "linked", tools, marks, ways, variables)


# --- the controls: what a program does that looks around as programs usually do


def control(planted: Planted, command: str, **variables: str) -> None:
    subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=planted.root,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIME_LIMIT,
        check=False,
    )


def test_every_planted_program_would_run(planted: Planted) -> None:
    for entry in planted.ways.values():
        lines = "\n".join(f"command {name}" for name in NAMES)
        control(planted, f"PATH={shlex.quote(entry)}\n{lines}\n")
    empty_is_current = {way: "current folder" if way == "empty" else way for way in planted.ways}
    expected = {f"{name}: {way}" for name in NAMES for way in empty_is_current.values()}
    assert planted.ran() == sorted(expected)
    assert len(NAMES) * len(planted.ways) >= 40


VARIABLES = {
    "BASH_ENV": "bash -c true",
    "BASH_FUNC": "bash -c 'test 1'",
    "PYTHONPATH": f"{sys.executable} -c pass",
    "PYTHONSTARTUP": f"{sys.executable} -i",
    "NODE_OPTIONS": "node -e 0",
    "PERL5OPT": "perl -e 0",
    "EDITOR": "unset GIT_EDITOR; git commit --allow-empty",
    "PAGER": "TERM=xterm script -qec 'unset GIT_PAGER; git log' /dev/null",
    "SHELL": "script -qec true /dev/null",
    "SSH_ASKPASS": "printf 'protocol=https\\nhost=h\\n\\n' | env -u GIT_ASKPASS git credential fill",
    **({"LD_PRELOAD": "git --version"} if sys.platform == "linux" else {}),
}


def test_every_planted_variable_would_run(planted: Planted) -> None:
    named = {"BASH_FUNC": ("BASH_FUNC_test%%",), "PERL5OPT": ("PERL5OPT", "PERL5LIB")}
    for name, command in VARIABLES.items():
        own = {key: planted.variables[key] for key in named.get(name, (name,))}
        control(planted, command, **own)
    assert planted.ran() == sorted(f"variable: {name}" for name in VARIABLES)


def test_every_planted_file_would_run(planted: Planted) -> None:
    python = sys.executable
    control(planted, f"{python} -m guard --version")
    for name in MODULES:
        module = name.removesuffix("/__init__.py").removesuffix(".py")
        control(planted, f"PYTHONPATH=. {python} -s -c 'import {module}'")
        # Python would not get as far as the next one.
        (planted.root / name).unlink()
    for name in INTERPRETERS:
        control(planted, f"{planted.tools / name} --version")
    control(planted, "tmux -L planted -f .tmux.conf new -d true; tmux -L planted kill-server")
    expected = {*MODULES, ".settings", ".tmux.conf"}
    assert planted.ran() == sorted(f"file: {name}" for name in expected)


# --- guard over all of it

RECORD = """
import json, os, runpy, sys
file, variables = os.environ.pop("TEST_RECORD"), os.environ.pop("TEST_VARIABLES")
os.environ.update(json.loads(variables))
kinds = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn", "os.system", "pty.spawn")
def heard(kind, given):
    if kind in kinds:
        environ = given[3] if kind == "subprocess.Popen" else given[2] if len(given) > 2 else None
        path = (os.environ if environ is None else environ).get("PATH")
        with open(file, "a") as log:
            log.write(json.dumps([kind, os.fsdecode(given[0]), path]) + "\\n")
sys.addaudithook(heard)
runpy.run_module("guard", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Recorder:
    """Calls guard with everything planted, and records the programs that it starts."""

    planted: Planted
    file: Path

    def call(self, *words: str | Path, chosen: bool = False, **env: str) -> list[list[str]]:
        """The programs that a command starts; what the user chose gets the user's variables, and so none are planted."""
        variables = {} if chosen else self.planted.variables
        given = {
            "PATH": self.planted.path,
            "TEST_RECORD": str(self.file),
            "TEST_VARIABLES": json.dumps(variables),
            **env,
        }
        result = run(*words, env=given, script=RECORD, stdin=env.pop("STDIN", ""))
        assert "a bug in guard" not in result.err, result.err
        assert self.planted.ran() == [], (words, result)
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.file.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]


@pytest.fixture
def recorder(planted: Planted, tmp_path: Path) -> Recorder:
    return Recorder(planted, tmp_path / "started")


CHOSEN = {"run", "loop", "agent test", "github step", "prove", "plan run"}
"""Commands that run what the user names: it gets the user's own variables."""
ASKS_AROUND = {"prove"}
"""Of these, those that ask the programs which the user's search path names what they would load."""


def stories(server: TmuxServer, folder: Path) -> Iterator[tuple[str, Sequence[str | Path]]]:
    """Calls of guard, in an order in which each has something to do."""
    agent = script(folder / "agent", "echo x >> work-agent.txt")
    lines = "cat > /dev/null; echo x > work-plan.txt; git add work-plan.txt; git commit -qm x"
    agent_of_plan = script(folder / "agent-of-plan", f"PATH={os.defpath}\n{lines}")
    says = answering(folder, "complete")
    place = ("--task", "T1", "--agent", "a1")
    yield "where", ()
    yield "help", ("exit-codes",)
    yield "init", ()
    yield "config", ()
    yield "trust", ("--show",)
    yield "install git", ()
    yield "install claude", ()
    yield "doctor", ()
    yield "baseline", ()
    yield "agent spawn", (*place, "--tmux-session", "s1", "--tmux-socket", server.socket)
    yield "agent update", (*place, "--status", "working", "--tmux-session", "s1")
    yield "agent list", ()
    yield "agent show", ("a1",)
    yield "agent wait", ("T1", "--timeout", "0")
    yield "agent test", (*place, "--", agent)
    yield "agent finding", (*place, "--text", "x")
    yield "status", ()
    yield "activity", ("a1", "--all-sources")
    yield "resume", ("a1", "--no-activity-check")
    for way in ("tmux", "session", "command"):
        yield "resume", ("a1", "--no-activity-check", "--send", "--by", way)
    for cli in INTERPRETERS:
        yield "probe", ("--agent", cli, "--session", SESSION)
    yield "check", (*QUICK, "--probe-command", says)
    yield "run", (*QUICK, "--probe-command", says, "--", agent)
    yield "loop", (*QUICK, "--probe-command", says, "--max-iterations", "1", "--", agent)
    yield "prove", ("--command", "true")
    yield "show", ()
    yield "notify", ("--test",)
    yield "baseline", ()
    yield "rescue", ()
    yield "snapshot", ()
    yield "snapshots", ()
    yield "restore", ("latest", "--diff")
    yield "judge", ("--replay", "1")
    write(folder / "PLAN.md", "- [ ] P1: first\n- [ ] P2: second (depends: P1)\n")
    yield "plan load", (folder / "PLAN.md",)
    yield "plan show", ()
    yield "plan usage", ()
    yield "plan tick", ()
    yield "plan next", ()
    yield "plan prompt", ("P1",)
    yield "plan outbox", ()
    yield "plan run", ("--agents", "1", "--audit", "true", "--", agent_of_plan)
    yield "plan land", ("P1",)
    yield "plan adopt", ()
    yield "event", ("task_ready", "task_id=T1")
    yield "rollback", ("T1",)
    yield "failures", ()
    yield "metrics", ()
    yield "report", ()
    yield "report", ("--format", "json")
    yield "breaker show", ()
    yield "breaker record", ("complete",)
    yield "team show", ()
    yield "gate", ()
    yield "classify", ()
    yield "hook claude", ("Stop",)
    yield "hook claude", ("SessionStart",)
    for hook in ("pre-commit", "post-commit", "pre-push"):
        yield "hook git", (hook,)
    yield "github prepare", ()
    yield "github step", ("--mode", "run", "--command", agent)
    yield "github step", ("--mode", "check")
    yield "github publish", ()
    yield "github status", ()
    yield "completion", ("bash",)
    yield "schema", ()
    yield "validate", ()
    yield "log", ()
    yield "verify", ()
    yield "rebuild", ()
    yield "agent kill", (*place, "--force")
    yield "uninstall git", ()


@pytest.mark.long
def test_guard_runs_nothing_that_was_planted(
    planted: Planted,
    recorder: Recorder,
    server: TmuxServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user_signs(planted, tmp_path)
    server.new("s1")
    monkeypatch.setenv("GUARD_COORDINATOR__USAGE_COMMAND", "usage")
    monkeypatch.setenv("GUARD_RESUME__COMMAND", "bring")
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path / "temp"))
    started: dict[str, set[str]] = {}
    for number, (name, words) in enumerate(stories(server, tmp_path)):
        write(planted.root / f"work-{number}.txt", f"{name}\n")
        env = {"PATH": os.environ["PATH"]} if name in ASKS_AROUND else {}
        found = recorder.call(*name.split(), *words, chosen=name in CHOSEN, **env)
        for kind, program, path in found:
            assert is_safe(planted, program, path, chosen=name in CHOSEN), (name, kind, program)
        started.setdefault(name.split()[0], set()).update(Path(one[1]).name for one in found)
    # The demo has a test of its own, and the dashboard serves until it is stopped: its pages come from what the report gathers.
    assert set(COMMANDS) - set(started) == {"dashboard", "demo"}
    assert started["doctor"] >= {"git", *INTERPRETERS}
    for name in ("agent", "status", "activity", "resume"):
        assert "tmux" in started[name]
    assert started["rescue"] >= {"git", "sh"}
    assert "\ngpgsig " in git(planted.root, "log", "--all", "--format=raw"), "by ssh-keygen"
    assert "git" in started["restore"]
    assert "git" in started["prove"]
    assert started["completion"] == {"bash"}


def user_signs(planted: Planted, folder: Path) -> None:
    key = folder / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(words, check=True, timeout=TIME_LIMIT, stdin=subprocess.DEVNULL)
    values = {"commit.gpgSign": "true", "gpg.format": "ssh", "user.signingKey": str(key)}
    for name, value in values.items():
        git(planted.root, "config", "--global", name, value)


def is_safe(planted: Planted, program: str, path: str | None, *, chosen: bool) -> bool:
    """Whether it was started by a whole path outside of what is planted, with a search path that leads out of it."""
    hostile = [planted.root, planted.linked, planted.root.parent / "outside"]
    real = Path(os.path.realpath(program))
    if not os.path.isabs(program) or any(real.is_relative_to(folder) for folder in hostile):
        return False
    return chosen or not {*(path or "").split(os.pathsep)} & {*planted.ways.values()}


def test_a_session_is_resumed_by_a_guard_that_imports_nothing_from_the_work_tree(
    planted: Planted, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__MAX_PROBES", "1")
    agent = (planted.tools / "claude", "-p", "x", "--output-format", "stream-json")
    path = f"{planted.tools}{os.pathsep}{os.environ['PATH']}"
    words = ("run", "--no-probe", "--task", "T1", "--agent-id", "a1", "--", *agent)
    run(*words, env={"PATH": path})
    assert iterations_ended() == 1
    found = recorder.call("resume", "a1", "--no-activity-check", "--send", "--by", "session")
    assert sys.executable in [program for _, program, _ in found]
    until(lambda: iterations_ended() == 2)
    assert planted.ran() == []


NAMED_IN_SETTINGS = {
    "coordinator.usage_command": ("GUARD_COORDINATOR__USAGE_COMMAND", ("plan", "usage")),
    "resume.command": (
        "GUARD_RESUME__COMMAND",
        ("resume", "a1", "--no-activity-check", "--send", "--by", "command"),
    ),
    "rescue.command": (
        "GUARD_RESCUE__COMMAND",
        ("check", *QUICK, "--agent", "command", "--probe-command", "ANSWER"),
    ),
    "notify.command": ("GUARD_NOTIFY__COMMAND", ("notify", "--test")),
    "notify.command, in a loop": (
        "GUARD_NOTIFY__COMMAND",
        ("loop", "--no-probe", "--max-iterations", "1", "--", "/bin/true"),
    ),
}
TOOLS_OF_THE_USER = {
    "in Python": "#!/usr/bin/env python3\nopen('RAN', 'a')\n",
    "in shell": "#!/usr/bin/env sh\necho x >> 'RAN'\n",
}


@pytest.mark.parametrize("text", TOOLS_OF_THE_USER.values(), ids=TOOLS_OF_THE_USER)
@pytest.mark.parametrize(("variable", "words"), NAMED_IN_SETTINGS.values(), ids=NAMED_IN_SETTINGS)
def test_what_the_settings_name_finds_no_planted_interpreter(
    variable: str,
    words: Sequence[str],
    text: str,
    planted: Planted,
    recorder: Recorder,
    tmp_path: Path,
) -> None:
    """The tool is the user's own, but its first line leaves it to the search path which interpreter reads it."""
    ran = tmp_path / "ran"
    write(planted.tools / "own-tool", text.replace("RAN", str(ran))).chmod(0o755)
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    write(planted.root / "PLAN.md", "- [ ] P1: first\n")
    assert run("plan", "load", "PLAN.md").code == 0
    assert run("baseline").code == 0
    write(planted.root / "work-1.txt", "x\n")
    given = [answering(tmp_path, "complete") if word == "ANSWER" else word for word in words]
    # The agent of a loop gets the user's variables.
    recorder.call(*given, chosen="loop" in words, **{variable: "own-tool"})
    assert ran.exists()


def test_a_notice_is_sent_from_a_folder_with_no_modules_of_an_agent(
    planted: Planted, recorder: Recorder, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    code = f'python3 -c \'import json, click; open("{ran}", "a")\' || echo > {ran}'
    recorder.call("notify", "--test", GUARD_NOTIFY__COMMAND=code)
    assert ran.exists()


def test_a_guard_that_is_started_again_imports_nothing_from_its_folder_or_by_its_variables(
    planted: Planted,
) -> None:
    """Its variables are those of the user, because the agent that it starts gets them."""
    variables = {"PYTHONPATH": "hostile/python", "PYTHONSTARTUP": "hostile/start.py"}
    for command in (own_guard("--version"), [sys.executable, "-P", "-m", "guard", "--version"]):
        done = subprocess.run(
            command,
            cwd=planted.root,
            env={**os.environ, **variables},
            capture_output=True,
            timeout=TIME_LIMIT,
            check=False,
            text=True,
        )
        if command[-2:] == ["guard", "--version"]:
            assert planted.ran() == ["variable: PYTHONPATH"], "the control"
        else:
            assert planted.ran() == []
            assert "guard" in done.stdout, done


def iterations_ended() -> int:
    return run("log", "--type", "iteration_ended").out.count("iteration_ended")


# --- no other way to start a program

STARTS = re.compile(
    r"subprocess\.(?!PIPE|DEVNULL|STDOUT|TimeoutExpired|CalledProcessError)\w+"
    r"|os\.(?:exec|spawn|posix_spawn|popen|system|startfile|fork)\w*|pty\.\w+|shutil\.which"
    r"|webbrowser\.\w+|multiprocessing\.\w+|asyncio\.create_subprocess\w*"
    r"|click\.(?:edit|launch|echo_via_pager|pager)|platform\.\w+|uuid\.(?:getnode|uuid1)"
    r"|ctypes\.util\.\w+|sys\.executable"
)
ALLOWED = {
    "guard/system/processes.py": {"subprocess.Popen", "os.fork"},
    "guard/system/programs.py": {"sys.executable"},
    "guard/hooks/git/work_tree.py": {"os.posix_spawn"},
    "guard/run/child.py": {"subprocess.Popen"},
    "guard/resume/cli_session.py": {"subprocess.Popen"},
    "guard/system/dialogue.py": {"subprocess.Popen"},
    "guard/prove/bounded_run.py": {"subprocess.Popen"},
    "guard/prove/supervisor.py": {"os.fork", "os.execv"},
    "guard/plan/worker.py": {"subprocess.Popen"},
    "guard/install/command_line.py": {"sys.executable"},
    "guard/demo/plays.py": {"sys.executable"},
}
"""Of `cli_session`, `dialogue`, `bounded_run` and `worker` only the type; `child` and `supervisor` start what the user says.

`plays` names Python in the command that proves the work of the demo.
"""


def test_programs_are_looked_up_and_started_in_one_place() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / "guard").rglob("*.py"))
        if (names := started_in(ast.parse(path.read_text())))
    }
    assert found == ALLOWED


def started_in(tree: ast.Module) -> set[str]:
    """The names in a module by which programs are started or looked up, also if they are imported alone."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if STARTS.fullmatch(name)}


@pytest.mark.parametrize(
    "code", ["import os\nos.system('x')", "from subprocess import run", "shutil.which('x')"]
)
def test_another_place_would_be_found(code: str) -> None:
    assert started_in(ast.parse(code))
