"""What a person answered to the question that ended an iteration: it goes into the next prompt of the loop."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Id, Instant, Text
from guard.core.check.events import QuestionAnswered
from guard.core.check.last_check import LastCheck
from guard.core.log.events import IterationNumber
from guard.core.log.view import FieldsFold, WorktreeView, worktree_view


class GivenAnswer(WorktreeView):
    """The newest answer to a question of an iteration of one work tree."""

    schema_: Literal["guard/answer/1"] = Field("guard/answer/1", alias="schema")
    run: Id
    iteration: IterationNumber
    at: Instant
    question: Text
    answer: Text

    def is_news(self, last: LastCheck | None) -> bool:
        """Tell whether no other iteration has been judged since the one that asked."""
        return last is not None and (last.run, last.iteration) == (self.run, self.iteration)

    def for_prompt(self) -> str:
        """Return what the next prompt says of it."""
        return (
            "A person has answered the question that the session before this one ended with.\n"
            f"Question: {self.question}\nAnswer: {self.answer}"
        )


_COPIED = QuestionAnswered.model_fields.keys() & GivenAnswer.model_fields.keys()


class GivenAnswerFold(FieldsFold[GivenAnswer]):
    document_class = GivenAnswer

    def apply(self, event: QuestionAnswered) -> None:
        self._fields = {name: getattr(event, name) for name in _COPIED}


ANSWER = worktree_view(
    GivenAnswer, GivenAnswerFold, (QuestionAnswered,), "answer", b'"type":"question_answered"'
)
