"""Call an agent's CLI once, in a private folder and under limits, and read its answer.

An answer counts only if the program ended well, its own report calls it a success, and exactly one object fits. Everything
else is a failure with a name.
"""

import errno
import os
import re
import tempfile
from datetime import datetime
from pathlib import Path
from time import monotonic

from guard.core.base.text import escape, fit_line
from guard.core.probe.answer import (
    LASTING,
    MOST_BYTES,
    Answer,
    BadAnswer,
    ProbeFailure,
    ProbeResult,
    extract_answer,
)
from guard.probe.base import Call, CannotAsk, Cli, ProbeCall, ProbeOutput, ProbeQuestion
from guard.probe.environment import probe_environment
from guard.system.process_table import end_marked
from guard.system.processes import Finished, run
from guard.system.programs import search_program

_NO_SESSION = re.compile(
    r"no conversation found|requires a valid session id|no rollout found|thread not loaded"
    r"|session not found|no saved session found|no session, task, or name matched"
    r"|file not found or invalid format",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ID = "GUARD_PROBE_ID"
_TAIL = 4096
_KILLED = -15


class ProbeAttempt:
    """One attempt, with a nonce of its own; its time counts from the beginning of the first one."""

    def __init__(self, cli: Cli, question: ProbeQuestion, began: float) -> None:
        self._cli = cli
        self._question = question
        self._began = began
        self._nonce = os.urandom(8).hex()
        self._id = os.urandom(8).hex()
        self._output = ProbeOutput(None)
        self.words: str | None = None
        """The answer to a question about something else than the session's state."""

    def result(self) -> ProbeResult:
        try:
            with tempfile.TemporaryDirectory(
                prefix="guard-probe-", ignore_cleanup_errors=True
            ) as scratch:
                return self._judge(self._run(self._cli.call(self._prepare_call(Path(scratch)))))
        except CannotAsk as error:
            return self._result(failure=error.failure, detail=error.detail)
        except OSError as error:
            return self._result(failure="crashed", detail=f"{error.filename}: {error.strerror}")

    def _prepare_call(self, scratch: Path) -> ProbeCall:
        question = self._question
        if question.session is None and self._cli.needs_session:
            raise CannotAsk("no_session", "no session of this agent is known")
        if question.session is not None and not self._cli.sessions.fullmatch(question.session):
            raise CannotAsk("no_session", f"{question.session!r} is not the id of a session")
        environ = {**probe_environment(question.environ, question.cwd), _ID: self._id}
        name = self._cli.program(question)
        search = search_program(name, question.environ, question.cwd)
        if search.program is None:
            nowhere = f"there is no program {name!r} on PATH outside the work tree"
            raise CannotAsk("no_cli", search.problem if search.refused else nowhere)
        return ProbeCall(question, search.program, self._nonce, scratch, environ)

    def _run(self, call: Call) -> Finished:
        try:
            return self._call(call)
        except OSError as error:
            kind: ProbeFailure = "no_cli" if error.errno in _NO_PROGRAM else "crashed"
            raise CannotAsk(kind, f"{error.filename} does not start: {error.strerror}") from None

    def _call(self, call: Call) -> Finished:
        try:
            return run(
                call.argv,
                environ=call.environ,
                time_limit=self._question.time_limit - (monotonic() - self._began),
                cwd=call.cwd,
                stdin=call.stdin,
                most_stdout=MOST_BYTES,
                most_stderr=_STDERR_BYTES,
                leaves_nothing=True,
            )
        finally:
            # A child in a session of its own outlives the group, and would be taken for the agent's.
            end_marked(f"{_ID}={self._id}")

    def _judge(self, finished: Finished) -> ProbeResult:
        if finished.overflowed:
            detail = f"it printed more than {MOST_BYTES} bytes"
            return self._result(failure="unreadable", detail=detail)
        if finished.code is not None:
            try:
                self._output = self._cli.read(finished.stdout)
                if finished.code == 0 and self._output.text is not None:
                    return self._read_answer(self._output.text)
            except BadAnswer as error:
                if finished.code == 0:
                    return self._result(failure="unreadable", detail=str(error))
        question = self._question
        failure, detail, retry_at = classify_failure(finished, question.agent, question.now)
        if finished.code is None:
            # A program that waits for a limit or an outage to end takes all the time that it gets.
            late = f"no answer within {question.time_limit:g} s"
            if failure not in ("limited", "overloaded"):
                return self._result(failure="timeout", detail=late)
            detail = f"{late}: {detail}"
        return self._result(failure=failure, detail=detail, retry_at=retry_at)

    def _read_answer(self, text: bytes) -> ProbeResult:
        if self._question.topic is not None:
            self.words = text.decode(errors="replace")
            return self._result(failure="unreadable", detail="an answer in words")
        may_omit = self._cli.whole_may_omit_nonce
        answer = extract_answer(text, self._nonce, whole_may_omit_nonce=may_omit)
        return self._result(answer=answer, detail=f"says {answer.status}")

    def _result(
        self,
        *,
        answer: Answer | None = None,
        failure: ProbeFailure | None = None,
        detail: str,
        retry_at: datetime | None = None,
    ) -> ProbeResult:
        session = self._question.session
        return ProbeResult(
            answer=answer,
            failure=failure,
            lasting=failure in LASTING,
            detail=fit_line(escape(detail), _DETAIL_LENGTH),
            retry_at=retry_at,
            agent=self._question.agent,
            session=None if session is None else fit_line(escape(session), _SESSION_LENGTH),
            elapsed_seconds=round(monotonic() - self._began, 3),
            cost_usd=self._output.cost_usd,
            tokens=self._output.tokens,
        )


def classify_failure(
    finished: Finished, agent: str, now: datetime
) -> tuple[ProbeFailure, str, datetime | None]:
    """Tell why a program gave no answer: the failure, a line about it, and when it ends if that is known.

    A program that did not end was killed, and what it printed before may tell why it took so long.
    """
    from guard.core.classify import make_reader
    from guard.core.classify.outcome import shorten_line

    errors = _ESCAPE.sub("", finished.stderr[-_TAIL:].decode(errors="replace"))
    if _NO_SESSION.search(errors):
        return "no_session", shorten_line(_last_line(errors)), None
    words = make_reader(agent)
    words.feed(finished.stdout)
    words.feed_error(finished.stderr)
    found = words.finish(_KILLED if finished.code is None else finished.code, now.astimezone())
    sentence = words.error_text or shorten_line(found.reason)
    match found.outcome:
        case "limited" | "auth":
            return found.outcome, sentence, found.retry_at
        case "transient":
            return "overloaded", sentence, found.retry_at
        case "crash" if found.reason == "server_error":
            return "overloaded", sentence, None
    if finished.code == 0:
        return "unreadable", "there is no answer in the output", None
    reported = words.error_text if words.format else ""
    cause = reported or _last_line(errors) or sentence
    return "crashed", shorten_line(f"exit code {finished.code}: {cause}"), None


def _last_line(text: str) -> str:
    return next((part for part in reversed(text.splitlines()) if part.strip()), "")


_STDERR_BYTES = 64 * 1024
_DETAIL_LENGTH, _SESSION_LENGTH = 400, 128
_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC, errno.ELOOP)
