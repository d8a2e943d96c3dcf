"""The transcript: what each agent CLI's stream says to people."""

import json

import pytest

from guard.core.show.transcript import LiveTranscript, entry_text, read_transcript
from tests.streams import init, jsonl, result, says, stream, uses


def shown(*chunks: bytes) -> str:
    return "\n".join(map(entry_text, read_transcript(chunks)))


SAID = {
    "claude-ok": ("> Bash: echo hello > out.txt; cat out.txt\n    hello\n", "Added the parser"),
    "claude-subagent": ("> Agent: write the page\n", "    | > Bash: echo sub > sub.txt\n"),
    "claude-usage-limit": ("! You've hit your 5-hour limit",),
    "codex-ok": ("> shell: /bin/bash -lc 'echo hi > cx.txt; cat cx.txt'\n    hi\n", "No findings"),
    "gemini-ok": ("» work\n> run_shell_command: ", "    g\nLooked at the file."),
    "opencode-ok": ("> bash: echo o > o.txt; cat o.txt\n    o\n", "Wrote the file."),
    "qwen-ok": ("> run_shell_command: ", "Wrote the notes."),
    "copilot-ok": ("» work\n> bash: ", "» Not finished yet\n", "Checked it again."),
}


@pytest.mark.parametrize("name", SAID)
def test_a_recorded_stream_reads_as_messages_and_calls(name: str) -> None:
    text = shown(stream(name))
    assert [word for word in SAID[name] if word not in text] == []
    assert "{" not in text


def test_it_does_not_matter_where_the_stream_is_cut() -> None:
    data = stream("gemini-ok")
    assert shown(*(data[at : at + 1] for at in range(len(data)))) == shown(data)


def test_pieces_of_a_message_are_one_message() -> None:
    def piece(text: str) -> dict[str, object]:
        return {"type": "message", "role": "assistant", "content": text, "delta": True}

    assert shown(jsonl(piece("Hel"), piece("lo."))) == "Hello."


def test_plain_text_stays_as_it_is_without_control_characters() -> None:
    assert shown(b"Working\x1b[2J\nDone.\n") == "Working\\x1b[2J\nDone."


def test_a_long_result_is_shortened_and_a_failed_one_marked() -> None:
    block = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "is_error": True,
        "content": "\n".join(map(str, range(20))),
    }
    result = {"type": "user", "session_id": "s", "message": {"content": [block]}}
    text = shown(
        jsonl(init(), says("I look."), uses("Bash", arguments={"command": "seq 20"}), result)
    )
    assert text.startswith("I look.\n> Bash: seq 20\n  ! 0\n    1\n")
    assert text.endswith("    5\n    … and 14 more lines")


def test_the_only_document_of_a_session_shows_its_answer() -> None:
    assert shown(jsonl(result("All is done."))) == "All is done."
    assert shown(jsonl(init(), says("I look."), result("I look."))) == "I look."
    stopped = {**result(), "is_error": True, "result": None}
    stopped["errors"] = ["Reached maximum number of turns (1)"]
    assert shown(jsonl(stopped)) == "! Reached maximum number of turns (1)"
    assert shown(b'{\n  "response": "Hello.",\n  "stats": {}\n}\n') == "Hello."


def live(*chunks: bytes, has_events: bool = True) -> str:
    view = LiveTranscript()
    found = [view.feed(chunk, has_events=has_events) for chunk in chunks]
    return b"".join([*found, view.end()]).decode()


@pytest.mark.parametrize("name", SAID)
def test_a_live_stream_reads_as_it_does_later(name: str) -> None:
    data = stream(name)
    assert live(data) == shown(data) + "\n"
    assert live(*(data[at : at + 7] for at in range(0, len(data), 7))) == live(data)


def test_an_array_of_all_events_reads_as_they_do() -> None:
    events = [json.loads(line) for line in stream("qwen-ok").splitlines()]
    assert live(json.dumps(events).encode() + b"\n") == live(stream("qwen-ok"))


def test_text_between_events_is_shown_at_once_and_unchanged() -> None:
    view = LiveTranscript()
    assert view.feed(b"Loading \x1b[1m", has_events=False) == b"Loading \x1b[1m"
    assert view.feed(b"{50 %}", has_events=False) == b"{50 %}"
    assert view.feed(b"\n[y/N", has_events=False) == b"\n[y/N"
    assert view.feed(b"] \n[", has_events=False) == b"] \n"
    assert view.feed(b"sudo] password: ", has_events=False) == b"[sudo] password: "
    assert view.feed(b"\n{", has_events=False) == b"\n"
    assert view.feed(b"a: 1}\n", has_events=False) == b"{a: 1}\n"
    piece = {"type": "message", "role": "assistant", "content": "Hi.", "delta": True}
    assert view.feed(jsonl(piece), has_events=True) == b""
    assert view.feed(b"Bye\n", has_events=True) == b"Hi.\nBye\n"


def test_objects_of_another_program_are_no_events() -> None:
    data = jsonl({"level": "info", "type": "message"})
    assert live(data, has_events=False) == data.decode()


def test_a_line_without_end_is_held_within_bounds() -> None:
    view = LiveTranscript()
    found = [view.feed(b"{" + b"x" * 999_999, has_events=True) for _ in range(10)]
    assert sum(map(len, found)) == 10_000_000
