"""Paste a prompt into the tmux pane of an agent, only while its recorded process reads there.

The process (pid and start time) is proved before anything is sent, again right before the paste, and again before the Enter
key. That the pane is alive, in no mode, not synchronised and open to input, the tmux server itself compares in the step of
the paste. What is left is the moment between the last look and the read: if the process ends just then, the next reader gets
the text, as one bracketed paste and without the Enter key that would run it.
"""

import os
from dataclasses import dataclass
from time import monotonic_ns, sleep

from guard.core.base.text import utf8_text
from guard.resume.foreground import NotInForeground, require_foreground
from guard.system import tmux

_SETTLE_SECONDS = 0.3
"""A program that gets the key together with the paste may take it for part of the text."""
_STATE = (
    "pid",
    "start_time",
    "pane_id",
    "pane_dead",
    "pane_in_mode",
    "pane_synchronized",
    "pane_input_off",
    "pane_tty",
)
_BRACKETS = "#{bracket_paste_flag}"
_WRONG = {
    "pane_dead": "it is dead",
    "pane_in_mode": "a user reads in it (copy mode)",
    "pane_synchronized": "typed text would go to other panes, too (synchronize-panes)",
    "pane_input_off": "it takes no input",
}


class CannotPaste(Exception):
    """Nothing was typed; the message says why."""


class EnterNotSent(Exception):
    """The text was pasted, but the Enter key was not sent."""


@dataclass(frozen=True)
class Pane:
    """The pane in which the recorded process reads."""

    socket_path: str
    state: tuple[str, ...]
    """The state that the server compares before it types."""
    process: tuple[int, str]

    @property
    def pane_id(self) -> str:
        return self.state[2]

    @property
    def terminal(self) -> str:
        return self.state[-1]


def find_pane(session: tmux.Session, process: tuple[int, str]) -> Pane:
    """The pane of the session in which this process is in the foreground; CannotPaste if there is none."""
    refused = [f"session {session.name} has no living pane"]
    for pane in session.panes:
        state = _read_state(session.socket_path, pane)
        try:
            require_foreground(*process, state[-1])
        except NotInForeground as error:
            refused.append(str(error))
            continue
        _require_usable(session, state)
        return Pane(session.socket_path, state, process)
    raise CannotPaste(_clearest_reason(refused))


def _require_usable(session: tmux.Session, state: tuple[str, ...]) -> None:
    values = dict(zip(_STATE, state, strict=True))
    wrong = [why for name, why in _WRONG.items() if values[name] != "0"]
    pane = f"the pane {values['pane_id']} of session {session.name}"
    if wrong:
        raise CannotPaste(f"{pane} is left alone: {wrong[0]}")
    if list(state[:2]) != session.identity.split("/")[:2]:
        raise CannotPaste("another tmux server answers now")
    # Known since tmux 3.7; earlier ones answer nothing.
    answer = tmux.call_tmux(session.socket_path, "display-message", "-p", "-t", state[2], _BRACKETS)
    if answer.stdout.strip() == b"0":
        raise CannotPaste(f"the program in {pane} takes no paste, and would read it line by line")


def _clearest_reason(refused: list[str]) -> str:
    # The reason for the pane that the process runs in, if it runs in one.
    others = [reason for reason in refused if "does not run on" not in reason]
    return others[-1] if len(others) > 1 else refused[-1]


def _read_state(socket_path: str, pane: str) -> tuple[str, ...]:
    words = "\t".join(f"#{{{name}}}" for name in _STATE)
    done = tmux.call_tmux(socket_path, "display-message", "-p", "-t", pane, words)
    values = tuple(done.stdout.decode(errors="replace").rstrip("\n").split("\t"))
    if done.code != 0 or len(values) != len(_STATE) or values[2] != pane:
        raise CannotPaste(f"tmux does not report the state of the pane {pane}")
    # An old tmux gives an empty answer for a name that it does not know.
    return tuple(value or "0" for value in values)


def paste(pane: Pane, text: str) -> None:
    """Type the text as one bracketed paste, then the Enter key; CannotPaste or EnterNotSent say how far it came."""
    name = f"guard-{os.getpid()}-{monotonic_ns()}"
    data = utf8_text(text).rstrip("\n").encode()
    loaded = tmux.call_tmux(pane.socket_path, "load-buffer", "-b", name, "-", stdin=data)
    if loaded.code != 0:
        raise CannotPaste("tmux did not take the text")
    try:
        _require_foreground(pane)
        # -p: brackets, if the program asked for them; -r: line feeds stay what they are, which no program takes for Enter.
        _run_if_unchanged(pane, f"paste-buffer -d -p -r -b {name} -t '{pane.pane_id}'")
    except CannotPaste:
        tmux.call_tmux(pane.socket_path, "delete-buffer", "-b", name)
        raise
    sleep(_SETTLE_SECONDS)
    try:
        _require_foreground(pane)
        _run_if_unchanged(pane, f"send-keys -t '{pane.pane_id}' Enter")
    except (CannotPaste, tmux.TmuxUnknown) as error:
        raise EnterNotSent(str(error)) from None


def _require_foreground(pane: Pane) -> None:
    try:
        require_foreground(*pane.process, pane.terminal)
    except NotInForeground as error:
        raise CannotPaste(str(error)) from None


def _run_if_unchanged(pane: Pane, command: str) -> None:
    # The server itself compares the state, in the same step as the command.
    fields = "/".join(f"#{{?{name},#{{{name}}},0}}" for name in _STATE)
    condition = f"#{{==:{fields},{'/'.join(pane.state)}}}"
    words = ("if-shell", "-F", "-t", pane.pane_id, condition, command, "display-message -p changed")
    done = tmux.call_tmux(pane.socket_path, *words)
    if done.code != 0 or done.stdout.strip() or done.stderr.strip():
        raise CannotPaste("the pane has changed in the meantime")
