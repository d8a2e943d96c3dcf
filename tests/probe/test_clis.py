"""Each CLI: how it is called, that it leaves no trace, what in its output is the answer. The outputs are captured ones."""

import json
import os
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from guard.core.classify import AGENTS
from guard.core.probe.answer import answer_schema
from tests.probe.standin import FORK, NOW, OPENCODE_SESSION, SESSION, asked, stand_in
from tests.support import write

CLAUDE = """
line(subtype="success", is_error=False, result="", structured_output={answer}, session_id="x", type="result",
     total_cost_usd=3.5, usage=dict(input_tokens=10, cache_creation_input_tokens=20, cache_read_input_tokens=300,
     output_tokens=5, server_tool_use=dict(web_search_requests=0), service_tier="standard"))
"""
CODEX = """
line(type="thread.started", thread_id="x")
line(type="item.completed", item=dict(id="item_0", type="error", message="Model metadata not found."))
line(type="turn.started")
line(type="error", message="Reconnecting... 1/1")
line(type="item.completed", item=dict(id="item_1", type="agent_message", text="Let me see."))
line(type="item.completed", item=dict(id="item_2", type="agent_message", text=answer("working")))
line(type="turn.completed", usage=dict(input_tokens=900, output_tokens=10))
"""
GEMINI = """
print("Loaded cached credentials.", file=sys.stderr)
print(json.dumps(dict(session_id="x", response=answer("working"),
      stats=dict(models={"a": dict(tokens=dict(total=15)), "b": dict(tokens=dict(total=5))})), indent=2))
"""
QWEN = """
print(json.dumps([
    dict(type="system", subtype="init"),
    dict(type="assistant", message=dict(usage=dict(total_tokens=15))),
    dict(type="result", subtype="success", is_error=False, result="", usage=dict(total_tokens=900),
         structured_result=document("working"))]))
"""
OPENCODE = """
line(type="step_start", part=dict(type="step-start"))
line(type="text", part=dict(type="text", text="Let me see."))
line(type="step_finish", part=dict(reason="tool-calls", tokens=dict(total=15), cost=0.25))
line(type="text", part=dict(type="text", text=answer("working")))
line(type="step_finish", part=dict(reason="stop", tokens=dict(total=5), cost=0.5))
"""
COPILOT = """
line(type="assistant.message", data=dict(content="Let me see.", toolRequests=[dict(name="view")]))
line(type="assistant.message", data=dict(content=answer("working"), toolRequests=[]))
line(type="session.background_tasks_changed", data={})
line(type="result", sessionId="x", exitCode=0, usage=dict(premiumRequests=1))
"""
COMMAND = "print(json.dumps(dict(status='working')))"


def sessions(home: Path) -> None:
    """The session as Gemini CLI, Qwen Code and Copilot CLI keep it, with a login."""
    chats = home / ".gemini" / "tmp" / "project" / "chats"
    write(chats / "session-2026-01-31T11-00-9e698464.jsonl", f'{{"sessionId":"{SESSION}"}}\n' * 9)
    write(chats / "session-2026-01-31T11-30-9e698464.jsonl", f'{{"sessionId":"{SESSION}"}}\n')
    write(
        chats / "session-2026-01-31T11-45-9e698464.jsonl", '{"sessionId":"9e698464-other"}\n' * 99
    )
    write(
        home / ".gemini" / "settings.json",
        '// mine\n{"security":{"auth":{"selectedType":"oauth-personal"}},"hooks":{"AfterAgent":[]}}',
    )
    write(home / ".gemini" / "oauth_creds.json", '{"refresh_token":"secret"}')
    write(home / ".qwen" / "projects" / "-work" / "chats" / f"{SESSION}.jsonl", "{}\n")
    state = home / ".copilot" / "session-state"
    write(state / SESSION / "events.jsonl", "{}\n")
    write(state / SESSION / "checkpoints" / "index.md", "none\n")
    os.mkfifo(state / SESSION / "pipe")
    (state / SESSION / "elsewhere").symlink_to(home)
    write(state / FORK / "events.jsonl", "{}\n")
    write(home / ".copilot" / "config.json", '{"token":"secret"}')


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


OUTPUTS: dict[str, tuple[str, int | None, float | None]] = {
    "claude": (CLAUDE.replace("{answer}", "document('working')"), 335, None),
    "codex": (CODEX, None, None),
    "gemini": (GEMINI, 20, None),
    "qwen": (QWEN, 15, None),
    "opencode": (OPENCODE, 20, 0.75),
    "copilot": (COPILOT, None, None),
    "command": (COMMAND, None, None),
}


@pytest.mark.parametrize(("agent", "output"), OUTPUTS.items(), ids=OUTPUTS)
def test_the_answer_is_found_and_nothing_is_left_behind(
    agent: str,
    output: tuple[str, int | None, float | None],
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions(home)
    before = contents(home)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    stand_in(tmp_path, agent, output[0])
    session = OPENCODE_SESSION if agent == "opencode" else SESSION
    begun = monotonic()
    result = asked(tmp_path, agent, session=session, command=agent)
    assert 0 < result.elapsed_seconds <= round(monotonic() - begun, 3)
    assert result.answer is not None, result
    assert (result.answer.status, result.failure, result.lasting) == ("working", None, False)
    assert (result.agent, result.session, result.tokens, result.cost_usd) == (
        agent,
        session,
        *output[1:],
    )
    assert contents(home) == before
    assert list(temporary.iterdir()) == []


def test_every_agent_is_tried_here() -> None:
    assert set(OUTPUTS) == set(AGENTS)


def nonce_in(text: str) -> str:
    return text.partition("nonce (string): exactly ")[2][:16]


def test_claude_is_asked_in_a_fork_without_a_trace(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "claude", OUTPUTS["claude"][0])
    asked(tmp_path, "claude")
    call = program.called
    argv, text = call["argv"], call["argv"][1]
    assert argv == [
        *("-p", text, "--resume", SESSION, "--fork-session", "--no-session-persistence"),
        *("--tools", "", "--strict-mcp-config"),
        *("--json-schema", json.dumps(answer_schema(nonce_in(text)))),
        *("--output-format", "json", "--settings", '{"disableAllHooks":true}', "--model", "sonnet"),
    ]
    assert (call["stdin"], call["cwd"]) == ("", str(tmp_path / "work"))


def test_claude_in_prose_beside_a_schema(tmp_path: Path) -> None:
    body = """line(type="result", subtype="success", is_error=False, result="Sure: " + answer("waiting"))"""
    stand_in(tmp_path, "claude", body)
    result = asked(tmp_path, "claude")
    assert result.answer is not None
    assert result.answer.status == "waiting"


def test_codex_is_asked_in_an_ephemeral_fork_that_can_only_read(tmp_path: Path) -> None:
    body = f"{CODEX}\nopen({str(tmp_path / 'schema')!r}, 'w').write(open(sys.argv[12]).read())"
    program = stand_in(tmp_path, "codex", body)
    asked(tmp_path, "codex", model="gpt-6")
    argv = program.called["argv"]
    schema, text = argv[11], argv[-1]
    assert argv == [
        *("exec", "--sandbox", "read-only", "fork", SESSION, "--json", "--ephemeral"),
        *("--skip-git-repo-check", "-c", "features.hooks=false", "--output-schema", schema),
        *("--model", "gpt-6", text),
    ]
    assert json.loads((tmp_path / "schema").read_text()) == answer_schema(nonce_in(text))
    assert not Path(schema).exists()


def test_codex_has_no_tool_servers_while_it_is_asked(home: Path, tmp_path: Path) -> None:
    write(home / ".codex/config.toml", '[mcp_servers.mail]\ncommand = "m"\n[mcp_servers."b-2"]\n')
    write(tmp_path / "work/.codex/config.toml", '[mcp_servers.planted]\ncommand = "p"\n')
    program = stand_in(tmp_path, "codex", CODEX)
    asked(tmp_path, "codex")
    settings = [word for word in program.called["argv"] if word.startswith("mcp_servers.")]
    assert settings == [f"mcp_servers.{name}.enabled=false" for name in ("b-2", "mail", "planted")]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ('[mcp_servers."a.b"]\ncommand = "x"\n', "no_cli"),
        ("no TOML at all [", None),
        ("mcp_servers = 3\n", None),
    ],
    ids=["a name that no option can spell", "damaged", "of another kind"],
)
def test_codex_settings_that_are_unusual(
    text: str, failure: str | None, home: Path, tmp_path: Path
) -> None:
    write(home / ".codex/config.toml", text)
    stand_in(tmp_path, "codex", CODEX)
    assert asked(tmp_path, "codex").failure == failure


def test_gemini_is_asked_in_a_home_of_its_own(home: Path, tmp_path: Path) -> None:
    sessions(home)
    body = f"""
own = os.environ["GEMINI_CLI_HOME"] + "/.gemini/"
seen = dict(names=sorted(os.listdir(own)), login=os.readlink(own + "oauth_creds.json"),
            settings=json.load(open(own + "settings.json")), here=os.listdir("."))
json.dump(seen, open({str(tmp_path / "seen")!r}, "w"))
{GEMINI}"""
    program = stand_in(tmp_path, "gemini", body)
    asked(tmp_path, "gemini")
    call = program.called
    chat = home / ".gemini/tmp/project/chats/session-2026-01-31T11-00-9e698464.jsonl"
    text = call["argv"][-1]
    options = ["--session-file", str(chat), "--approval-mode", "plan", "-o", "json"]
    assert call["argv"] == [*options, "-p", text]
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["names"] == ["oauth_creds.json", "settings.json"]
    assert seen["login"] == str(home / ".gemini" / "oauth_creds.json")
    assert seen["settings"]["security"] == {"auth": {"selectedType": "oauth-personal"}}
    assert (seen["settings"]["tools"], seen["settings"]["hooksConfig"]) == (
        {"core": []},
        {"enabled": False},
    )
    assert "hooks" not in seen["settings"]
    assert (seen["here"], call["environ"]["GEMINI_CLI_TRUST_WORKSPACE"]) == ([], "true")
    assert not Path(call["environ"]["GEMINI_CLI_HOME"]).exists()


def test_copilot_is_asked_in_a_copy(home: Path, tmp_path: Path) -> None:
    sessions(home)
    body = f"""
own = os.environ["COPILOT_HOME"]
names = sorted(os.path.relpath(os.path.join(at, name), own) for at, _, names in os.walk(own) for name in names)
seen = dict(names=names, login=os.readlink(own + "/config.json"), settings=json.load(open(own + "/settings.json")))
json.dump(seen, open({str(tmp_path / "seen")!r}, "w"))
open(own + "/session-state/{SESSION}/events.jsonl", "a").write("more")
{COPILOT}"""
    program = stand_in(tmp_path, "copilot", body)
    result = asked(tmp_path, "copilot", environ={"COPILOT_ALLOW_ALL": "true"})
    assert result.answer is not None
    call = program.called
    assert call["argv"][2:] == [
        *(f"--resume={SESSION}", "--output-format", "json"),
        *("--available-tools=view,grep", "--disable-builtin-mcps"),
    ]
    assert "COPILOT_ALLOW_ALL" not in call["environ"]
    seen = json.loads((tmp_path / "seen").read_text())
    kept = [f"session-state/{SESSION}/{name}" for name in ("checkpoints/index.md", "events.jsonl")]
    assert seen["names"] == ["config.json", *kept, "settings.json"]
    assert seen["login"] == str(home / ".copilot" / "config.json")
    assert seen["settings"] == {"disableAllHooks": True}


def test_qwen_forks_beside_a_copy(home: Path, tmp_path: Path) -> None:
    sessions(home)
    body = f"""
own = os.environ["QWEN_RUNTIME_DIR"] + "/projects/-work/chats/"
assert os.listdir(own) == ["{SESSION}.jsonl"]
{QWEN}"""
    program = stand_in(tmp_path, "qwen", body)
    assert asked(tmp_path, "qwen").answer is not None
    argv = program.called["argv"]
    assert argv == [
        *(argv[0], "-r", SESSION, "--fork-session", "--safe-mode", "--approval-mode", "plan"),
        *("--json-schema", json.dumps(answer_schema(nonce_in(argv[0]))), "-o", "json"),
    ]


def test_qwen_forks_among_the_users_sessions_where_the_session_is_not_found(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "qwen", QWEN)
    assert asked(tmp_path, "qwen").answer is not None
    assert "QWEN_RUNTIME_DIR" not in program.called["environ"]


def test_opencode_hears_the_question_on_stdin(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "opencode", OPENCODE)
    asked(tmp_path, "opencode", session=OPENCODE_SESSION, model="fake/model")
    call = program.called
    assert call["argv"] == [
        *("run", "--format", "json", "-s", OPENCODE_SESSION, "--fork", "--agent", "plan"),
        *("-m", "fake/model"),
    ]
    assert call["stdin"].startswith("This is a status check")
    assert json.loads(call["environ"]["OPENCODE_PERMISSION"]) == {"*": "deny"}


def test_a_command_hears_the_question_on_stdin_and_the_session_in_a_variable(
    tmp_path: Path,
) -> None:
    program = stand_in(tmp_path, "my-probe", COMMAND)
    result = asked(tmp_path, "command", command="my-probe 'two words' $HOME;ls", session="s-1")
    assert result.answer is not None
    call = program.called
    assert call["argv"] == ["two words", "$HOME;ls"]
    assert call["environ"]["GUARD_SESSION"] == "s-1"
    assert call["stdin"].startswith("This is a status check")


def test_a_command_needs_no_session(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "my-probe", COMMAND)
    result = asked(tmp_path, "command", command="my-probe", session=None)
    assert (result.answer is not None, result.session) == (True, None)
    assert "GUARD_SESSION" not in program.called["environ"]


RESULT = """
line(type="result", session_id="x", subtype={subtype!r}, is_error={error}, result={result}, structured_output={answer})
"""
NOT_ANSWERED: dict[str, tuple[str, str, str]] = {
    "claude that failed": (
        "claude",
        RESULT.format(subtype="success", error=True, result="'API Error'", answer="document()"),
        "unreadable",
    ),
    "claude that does not say whether it failed": (
        "claude",
        RESULT.format(subtype="success", error=None, result="''", answer="document()"),
        "unreadable",
    ),
    "claude at its turn limit": (
        "claude",
        RESULT.format(subtype="error_max_turns", error=False, result="''", answer="document()"),
        "unreadable",
    ),
    "claude in a structure that does not fit": (
        "claude",
        RESULT.format(subtype="success", error=False, result="answer()", answer="[]"),
        "unreadable",
    ),
    "claude that printed nothing": ("claude", "", "unreadable"),
    "claude that ended badly after all": (
        "claude",
        CLAUDE.replace("{answer}", "document()") + "sys.exit(1)",
        "crashed",
    ),
    "codex whose turn failed": (
        "codex",
        CODEX + 'line(type="turn.failed", error=dict(message="no"))',
        "unreadable",
    ),
    "codex whose turn did not end": ("codex", CODEX.rpartition("line(")[0], "unreadable"),
    "codex with a last message that cannot be read": (
        "codex",
        CODEX.replace('line(type="turn.completed"', 'print(\'{"type": 1, "type": 2}\'); line(type="turn.completed"'),
        "unreadable",
    ),
    "gemini with an error beside its response": (
        "gemini",
        GEMINI.replace("response=", "error=dict(type='Error', message='no'), response="),
        "unreadable",
    ),
    "qwen that failed": (
        "qwen",
        QWEN.replace("is_error=False", "is_error=True, error=dict(message='no')"),
        "unreadable",
    ),
    "opencode that stopped for a tool": ("opencode", OPENCODE.replace('"stop"', '"tool-calls"'), "unreadable"),
    "opencode with an error": (
        "opencode",
        OPENCODE + 'line(type="error", error=dict(name="APIError", data=dict(message="no")))',
        "unreadable",
    ),
    "copilot that failed": ("copilot", COPILOT.replace("exitCode=0", "exitCode=1"), "unreadable"),
    "copilot without a result": ("copilot", COPILOT.rpartition("line(")[0], "unreadable"),
}  # fmt: skip


@pytest.mark.parametrize(("agent", "body", "failure"), NOT_ANSWERED.values(), ids=NOT_ANSWERED)
def test_what_is_no_success_is_no_answer(
    agent: str, body: str, failure: str, home: Path, tmp_path: Path
) -> None:
    sessions(home)
    stand_in(tmp_path, agent, body)
    session = OPENCODE_SESSION if agent == "opencode" else SESSION
    result = asked(tmp_path, agent, session=session)
    assert result.answer is None
    assert (result.failure, result.lasting) == (failure, False), result.detail


UNKNOWN: dict[str, tuple[str, str]] = {
    "claude": ("claude", "No conversation found with session ID: x"),
    "codex": ("codex", "Error: thread/read failed: thread not loaded: x (code -32600)"),
    "codex of an earlier version": ("codex", "Error: no rollout found for thread id x"),
    "qwen": ("qwen", "No saved session found with ID x. Run `qwen --resume` to choose."),
    "opencode": ("opencode", "\x1b[91m\x1b[1mError: \x1b[0mSession not found"),
}


@pytest.mark.parametrize(("agent", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_session_that_the_cli_does_not_know(agent: str, words: str, tmp_path: Path) -> None:
    stand_in(tmp_path, agent, f"sys.exit({words!r})")
    session = OPENCODE_SESSION if agent == "opencode" else SESSION
    result = asked(tmp_path, agent, session=session)
    assert (result.failure, result.lasting) == ("no_session", True)
    assert result.detail.isprintable()
    assert "\\x1b" not in result.detail


@pytest.mark.parametrize("agent", ["gemini", "copilot"])
def test_a_session_that_is_not_on_disk_is_not_asked(agent: str, tmp_path: Path) -> None:
    program = stand_in(tmp_path, agent, "")
    result = asked(tmp_path, agent)
    assert (result.failure, result.lasting) == ("no_session", True)
    assert not program.log.exists()


TROUBLE: dict[str, tuple[str, str, str, bool, Any]] = {
    "a usage limit of claude's": (
        "claude",
        """line(type="result", session_id="x", subtype="success", is_error=True, api_error="usage_limit_reached",
                api_error_status=429, result="You've hit your 5-hour limit · resets 3:33pm (UTC)"); sys.exit(1)""",
        "limited",
        False,
        NOW.replace(hour=15, minute=33),
    ),
    "a usage limit of codex's": (
        "codex",
        """line(type="turn.started")
line(type="turn.failed", error=dict(message="You’ve hit your usage limit. Try again at 3:33 PM.")); sys.exit(1)""",
        "limited",
        False,
        NOW.replace(hour=15, minute=33),
    ),
    "a refused key of claude's": (
        "claude",
        """line(type="result", session_id="x", subtype="success", is_error=True, api_error_status=401,
                result="Invalid API key · Fix external API key"); sys.exit(1)""",
        "auth",
        True,
        None,
    ),
    "a refused key of codex's": (
        "codex",
        """line(type="turn.started")
line(type="turn.failed", error=dict(message="unexpected status 401 Unauthorized: bad key")); sys.exit(1)""",
        "auth",
        True,
        None,
    ),
    "a missing key of gemini's": (
        "gemini",
        """print(json.dumps(dict(session_id="x", error=dict(type="Error", code=41,
                message="you must specify the GEMINI_API_KEY environment variable.")), indent=2), file=sys.stderr)
sys.exit(41)""",
        "auth",
        True,
        None,
    ),
    "a crash": ("claude", "sys.exit('Segmentation fault')", "crashed", False, None),
}


@pytest.mark.parametrize(
    ("agent", "body", "failure", "lasting", "retry_at"), TROUBLE.values(), ids=TROUBLE
)
def test_what_a_cli_fails_with_has_a_name(
    agent: str, body: str, failure: str, lasting: bool, retry_at: Any, home: Path, tmp_path: Path
) -> None:
    sessions(home)
    program = stand_in(tmp_path, agent, body)
    result = asked(tmp_path, agent)
    assert (result.failure, result.lasting, result.retry_at) == (failure, lasting, retry_at), result
    assert result.detail
    assert len(program.calls) == 1


RETRYING = """Attempt 1 failed with status 429. Retrying with backoff... _ApiError: {"error":{"code":429}}
    at async Turn.run (file:///bundle/chunk.js:333001:24) {
  status: 429
}"""
WAITED: dict[str, tuple[str, str, str]] = {
    "gemini, which tries again": ("gemini", f"print({RETRYING!r}, file=sys.stderr, flush=True)", "limited"),
    "gemini, which is not there": (
        "gemini",
        f"print({RETRYING.replace('429', '503')!r}, file=sys.stderr, flush=True)",
        "overloaded",
    ),
    "copilot, which tries again": (
        "copilot",
        """line(type="user.message", data=dict(content="x"))
line(type="model.call_failure", data=dict(statusCode=429, errorType="rate_limit_error"))""",
        "limited",
    ),
    "claude, which waits for its limit to end": (
        "claude",
        """line(type="system", subtype="init", session_id="x")
line(type="rate_limit_event", session_id="x", rate_limit_info=dict(status="rejected", resetsAt=1769864400))""",
        "limited",
    ),
    "claude, which works": ("claude", 'line(type="system", subtype="init", session_id="x")', "timeout"),
    "claude, which has answered": ("claude", CLAUDE.replace("{answer}", "document()"), "timeout"),
    "copilot, which was refused": (
        "copilot",
        """line(type="user.message", data=dict(content="x"))
line(type="model.call_failure", data=dict(statusCode=401, errorType="authentication_error"))""",
        "timeout",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("agent", "body", "failure"), WAITED.values(), ids=WAITED)
def test_a_probe_that_waits_for_a_limit_is_limited_and_never_an_answer(
    agent: str, body: str, failure: str, home: Path, tmp_path: Path
) -> None:
    sessions(home)
    said = tmp_path / "said"
    notes = f"sys.stdout.flush()\ntime.sleep(0.5)\nopen({str(said)!r}, 'w').close()"
    stand_in(tmp_path, agent, f"{body}\n{notes}\ntime.sleep(600)")
    for limit in (2, 10, 90):  # On a busy machine it may not have spoken by the first of these.
        result = asked(tmp_path, agent, time_limit=limit)
        if said.exists():
            break
    assert (result.failure, result.answer, result.lasting) == (failure, None, False), result
    assert result.detail.startswith(f"no answer within {limit} s")
    assert result.retry_at == (NOW.replace(hour=13) if "resetsAt" in body else None)


DETAILS: dict[str, tuple[str, str, str]] = {
    "gemini's document": (
        "gemini",
        """error = dict(type="Error", message="the request is bad", code=400)
print("Ripgrep is not available.", json.dumps(dict(session_id="x", error=error), indent=2), sep=chr(10), file=sys.stderr)
sys.exit(144)""",
        "exit code 144: the request is bad",
    ),
    "qwen's result": (
        "qwen",
        """result = dict(type="result", session_id="x", subtype="error_during_execution", is_error=True,
    error=dict(message="[API Error: 400 bad]"))
print(json.dumps([result]))
print("Ripgrep not available: spawn rg EACCES.", file=sys.stderr)
sys.exit(1)""",
        "exit code 1: [API Error: 400 bad]",
    ),
    "no error line": ("claude", "sys.exit('Segmentation fault')", "exit code 1: Segmentation fault"),
    "no word": ("claude", "sys.exit(9)", "exit code 9: exit_9"),
    "claude's limit": (
        "claude",
        """line(type="result", session_id="x", subtype="success", is_error=True, api_error_status=429,
    result="You've hit your limit · resets 3pm (UTC)"); sys.exit(1)""",
        "You've hit your limit · resets 3pm (UTC)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("agent", "body", "detail"), DETAILS.values(), ids=DETAILS)
def test_the_detail_is_what_the_program_said_of_its_failure(
    agent: str, body: str, detail: str, home: Path, tmp_path: Path
) -> None:
    sessions(home)
    stand_in(tmp_path, agent, body)
    assert asked(tmp_path, agent).detail == detail
