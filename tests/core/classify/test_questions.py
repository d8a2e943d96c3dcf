"""Labelled last messages: which of them stop for an answer, and which only look like it."""

import pytest

from guard.core.classify import Classification, classify
from guard.core.classify.question import find_question
from tests.streams import NOW, init, jsonl, result, says

STOPS = (
    "The issue does not say which database to use. Should I use PostgreSQL or SQLite? Please let me know.",
    "I found two databases in the config. Is it production or staging?",
    "The migration would drop the users table. I'll wait for your go-ahead.",
    "I can do this with Redis or in memory. Both are fine technically. Your call.",
    "Two ways.\nWhich one should I take?",
    "I need the API key for the payment service before I can continue. Where can I find it?",
    "I can't proceed without the database password. Please provide it.",
    "Before I make any changes: should the new endpoint be public?",
    "The spec is ambiguous about time zones. Do you want UTC or local time?",
    "There are two options:\n\n1. Rewrite the parser\n2. Patch the lexer\n\nWhich do you prefer?",
    "Which approach should I take?\n\n1. Rewrite the parser\n2. Patch the lexer",
    "Please choose one of these:\n- A: keep the old API\n- B: break it",
    "I looked at the code and have a plan: add a cache, then invalidate on write. Should I proceed?",
    "Here is my plan:\n1. Add a column\n2. Backfill it\n\nDoes this look good to you?",
    "I have not changed anything yet. Shall I start with the backend?",
    "This deletes 14,000 rows in production and cannot be undone. Are you sure you want me to run it?",
    "I'm not sure which of the two `config.yml` files is the right one. Can you tell me?",
    "I'm blocked: the repository needs credentials for the private registry. Please provide a token.",
    "The tests need a running Postgres, and I cannot start one here. How would you like me to proceed?",
    "Please confirm that I may delete the legacy folder.",
    "Let me know which version of Node I should target.",
    "Waiting for your decision on the schema.",
    "I am waiting for your approval to run the migration.",
    "I stopped here because the change would break the public API. Is that acceptable?",
    "What should the default timeout be?",
    "Could you clarify what you mean by *fast mode*?",
    "I need you to log in to the registry first.",
    "The task mentions a design document, but there is none in the repository. Where is it?",
    "Questions before I start:\n1. Which Python version do you target?\n2. Is Windows support needed?",
    "I need clarification:\n- Should errors be logged or raised?\n- Who may call the endpoint?",
    "I have added the model. The controller depends on the auth provider, which is not specified. Is it Okta or Auth0?",
    "The parser is written, but I can't finish the exporter until you decide on the format.",
    "Do you want me to overwrite the existing file, or write to a new one?",
    "Should I keep backward compatibility or drop it? I recommend dropping it. I'll implement it once you confirm.",
    "I could not find the specification. Can you share the link?",
    "Both `main` and `develop` have diverged. Which branch is the base?",
    "It's up to you whether we migrate the data now. I cannot continue until that is decided.",
    "Without your confirmation I won't touch the production cluster. May I go ahead?",
    "**Which license should the package use?**",
    "I would have to force-push to fix the history. OK to proceed?",
    "May I install the missing system packages with sudo?",
    "Tell me which of the three endpoints to remove and I will do it.",
    "Option A is faster, option B is safer. It's your call.",
    "The password for the test account is needed to continue; what is it?",
    "Once you tell me the target region, I'll write the Terraform files.",
    "I haven't written any code yet, since the requirements conflict. Which one wins?",
    "I need the value of STRIPE_KEY to go on.",
    "Ready to start when you give me the go-ahead.",
    "I added the endpoint. However, the spec doesn't say whether deleted users keep sessions. Which do you want?",
    "The migration is not complete. Which of the two tables may I drop?",
)
GOES_ON = (
    "Everything works. Do you have any other tasks?",
    "I could not reproduce the bug, but added a test. All green. Want me to dig deeper?",
    "Refactoring complete; does that look good?",
    "I wrote the FAQ: What is guard? How do I start it? Both are answered on the page.",
    "Done. All 12 tests pass. Would you like me to open a PR?",
    "I've implemented the parser and committed it. Would you like me to also add a benchmark?",
    "I fixed the bug and added a test. Let me know if you have any questions!",
    "Implemented the cache. Anything else?",
    "Why did this fail? Because the path was relative. I fixed it and the tests pass.",
    'The dialog now asks "Are you sure you want to delete this?" before it deletes. Tests pass.',
    "I added the prompt:\n\n```\nDo you want to continue? [y/N]\n```\n\nAll tests pass.",
    "The prompt is in place; it prints\n\n```\nWhich database should I use?\n```",
    "It now prints\n> Should I overwrite the file?",
    "Added the new string `Which file should I open?`",
    'Renamed the button to "Shall I continue?"',
    "What does this do? It walks the tree and collects the leaves. Committed as 1a2b3c4.",
    "All done! Want me to push it?",
    "The refactoring is complete and everything passes. Should I also update the changelog?",
    "I've updated the docs. Feel free to ask if anything is unclear to you.",
    "I committed the fix. If you'd like, I can also backport it. Just let me know!",
    "Finished. Shall I commit these changes?",
    "All tests pass now. Is there anything else you'd like me to do?",
    "The feature is complete. What would you like me to work on next?",
    "I have added the endpoint and its tests. Do you want me to deploy it?",
    "Completed the migration. How does that look?",
    "I removed the dead code. Does that work for you?",
    "Implemented as asked. Next I could add caching or pagination; would you like either?",
    "I created the PR; it is waiting for your review.",
    "Fixed the flaky test. Can I help with anything else?",
    "I wrote a FAQ with the entries *How do I install it?* and *Where are the logs?* and committed it.",
    "Added a section that answers: who may call this? Admins only. Committed.",
    "I've fixed the crash. The question was: which thread owns the lock? The reader does.",
    "The spec did not say which port to use, so I went with 8080. All tests pass.",
    "I wasn't sure whether to use tabs or spaces? The project uses spaces, so I used spaces. Done.",
    "Done. Please let me know if you want any changes.",
    "Everything is committed. Please review and merge when you're ready.",
    "I implemented both variants and committed them. Thanks!",
    "The tests pass. Happy to explain any part of it.",
    "I will look into it.",
    "Working on it; the build is running in the background.",
    "Added the survey with the questions:\n\n- How old are you?\n- Where do you live?",
    "I've completed all tasks.\n\nPossible follow-ups:\n- Should we cache the results?\n- Could we drop Python 3.8?",
    "Should I have used a mutex? No: the queue is already thread-safe. Committed.",
    "Updated `confirm.ts` so that the user is asked: Do you really want to leave? Tests pass.",
    "I've pushed the branch. Would you like me to open a pull request or leave it as it is?",
    "All 40 checks are green. Ready to merge?",
    "I added the retry logic and the tests are passing. Should I proceed with the next task?",
    "Fixed. You can now run `npm start`. Enjoy!",
    "The unclear error message is now fixed. Tests are green.",
    "",
    "Done?",
)  # fmt: skip
CASES = [(message, True) for message in STOPS] + [(message, False) for message in GOES_ON]


def test_at_least_95_percent_are_right_and_no_healthy_ending_is_blocked() -> None:
    wrong = [text for text, stops in CASES if (find_question(text) is not None) != stops]
    assert len(CASES) >= 80
    assert len(wrong) <= 0.05 * len(CASES), wrong
    assert not [text for text in wrong if text in GOES_ON]


def outputs(message: str) -> list[bytes]:
    codex = {
        "type": "item.completed",
        "item": {"id": "j", "type": "agent_message", "text": message},
    }
    gemini = {"type": "message", "role": "assistant", "content": message}
    return [
        jsonl(init(), says(message), result(message)),
        jsonl(
            {"type": "thread.started", "thread_id": "t1"},
            {"type": "turn.started"},
            codex,
            {"type": "turn.completed"},
        ),
        jsonl(
            {"type": "init", "session_id": "s1", "model": "m"},
            gemini,
            {"type": "result", "status": "success"},
        ),
        f"{message}\n".encode(),
    ]


@pytest.mark.parametrize("message", [STOPS[0], STOPS[3], GOES_ON[0], GOES_ON[7]])
def test_every_agent_asks_in_the_same_words(message: str) -> None:
    found = [classify(data, b"", None, 0, NOW) for data in outputs(message)]
    expected = "question" if message in STOPS else "ok"
    assert [one.outcome for one in found] == [expected] * 4


def asked(message: str) -> Classification:
    return classify(jsonl(init(), says(message), result(message)), b"", "claude", 0, NOW)


def test_the_words_of_the_question_are_kept() -> None:
    assert asked(STOPS[0]).words == "Should I use PostgreSQL or SQLite?"
    assert asked(GOES_ON[0]).words is None
