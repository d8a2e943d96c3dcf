"""The harness itself: the real CLIs follow the script and find their place after a resume; what is not scripted is noticed."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support import commit, git
from tests.support.agent_clis import AgentCli, session_in
from tests.support.model import Model, call, refuse, say
from tests.support.model.server import serving

_RESUME = {"claude": ("--resume",), "codex": ("resume",)}


_GENERATE = "/v1beta/models/any:generateContent"


def _ask(model: Model, prompt: str) -> str:
    said = [{"role": "user", "content": prompt}]
    return _post(model, "/v1/messages", {"model": "any", "stream": True, "messages": said})


def _post(model: Model, path: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(f"{model.url}{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def test_a_session_does_what_the_script_says(
    any_agent: AgentCli, model: Model, repository: Path
) -> None:
    commit(repository)
    model.script(
        "fix the bug",
        any_agent.shell("echo fixed > fix.txt && git add fix.txt && git commit -qm Fix"),
        say("The bug is fixed."),
    )
    done = any_agent.run("fix the bug")
    assert done.code == 0, done.err
    assert "The bug is fixed." in done.out
    assert git(repository, "log", "-1", "--format=%s") == "Fix\n"


def test_a_resumed_session_plays_the_script_of_its_newest_prompt(
    agent: AgentCli, model: Model
) -> None:
    model.script("begin the page", agent.shell("echo begun > page"), say("Begun."))
    model.script("end the page", agent.shell("echo ended >> page"), say("Ended."))
    session = session_in(agent.run("begin the page").out)
    done = agent.run(*_RESUME[agent.name], session, "end the page")
    assert done.code == 0, done.err
    assert Path("page").read_text() == "begun\nended\n"
    assert "Begun." in json.dumps(model.requests[-1])


def test_who_wants_no_stream_gets_one_document() -> None:
    model = Model()
    model.script("look", call("ls", path="."), say("Seen."))
    asked = {"role": "user", "content": "look"}
    called = {"role": "assistant", "content": None}
    parts = [{"role": "user", "parts": [{"text": "look"}]}, {"role": "model", "parts": []}]
    with serving(model):
        chat = [
            json.loads(_post(model, "/v1/chat/completions", {"model": "any", "messages": said}))
            for said in ([asked], [asked, called])
        ]
        content = [
            json.loads(_post(model, _GENERATE, {"contents": said})) for said in (parts[:1], parts)
        ]
    first, last = (found["choices"][0] for found in chat)
    assert first["message"]["tool_calls"][0]["function"]["arguments"] == '{"path": "."}'
    assert (last["message"]["content"], last["finish_reason"]) == ("Seen.", "stop")
    first, last = (found["candidates"][0]["content"]["parts"] for found in content)
    assert first == [{"functionCall": {"name": "ls", "args": {"path": "."}}}]
    assert last == [{"text": "Seen."}]


def test_a_step_can_be_made_from_its_prompt() -> None:
    model = Model()
    model.script("repeat", lambda prompt: say(prompt.removeprefix("repeat ")))
    with serving(model):
        assert "nonce-17" in _ask(model, "repeat nonce-17")


def test_a_prompt_without_a_script_is_refused_and_noticed() -> None:
    model = Model()
    with serving(model), pytest.raises(urllib.error.HTTPError, match="400"):
        _ask(model, "who are you?")
    assert model.unscripted == ["step 0 after ''"]


def test_a_script_that_has_ended_is_noticed() -> None:
    model = Model()
    model.script("one answer", refuse(503, "api_error"))
    turns = [("user", "one answer"), ("assistant", "given")]
    assert model.reply(turns).status == 400
    assert model.unscripted == ["step 1 after 'one answer'"]
