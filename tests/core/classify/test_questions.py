"""Labelled last messages: which of them stop for an answer, and which only look like it."""

import pytest

from guard.core.classify import Classification, classify
from guard.core.classify.question import find_question
from tests.streams import NOW, SESSION, init, jsonl, result, says, uses

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
    ("I've gone through the codebase and there are **two** places that could own this logic:\n\n- "
    "`src/api/auth.ts`\n- `src/middleware/session.ts`\n\nI don't want to guess here — which one would you like me "
    "to change?"),
    ("I apologize for the confusion. I still don't understand what the expected output is. Could you give me an "
    "example of the input and the result you expect?"),
    ("I've completed steps 1–3 of the plan. Step 4 drops the `legacy_orders` table, which is irreversible, so I've "
    "stopped there. Please confirm that you want me to go ahead."),
    "The `.env` file is not in the repository, and the app refuses to start without `DATABASE_URL`. What value should I use?",
    ("Here's the plan I'd follow:\n\n1. Extract the interface\n2. Move the Stripe code behind it\n3. Add the PayPal "
    "adapter\n\nLet me know if this plan works for you and I'll start implementing."),
    ("I haven't made any edits. The request says \"make it faster\", but it's not clear whether that means start-up "
    "time or throughput. Which of the two matters to you?"),
    ("Before I touch anything: this package is published, so renaming the export is a breaking change. Are you okay "
    "with a major version bump?"),
    ("I need a decision from you on the following:\n\n- **Option A** – keep REST and add a version prefix\n- "
    "**Option B** – move to GraphQL\n\nReply with A or B."),
    ("I'm unable to push: the remote asks for a username and password. I need you to authenticate with `gh auth "
    "login` before I can continue."),
    "Quick question before I continue: should archived projects be included in the export, or only active ones?\n\nThanks!",
    ("Partial progress: the schema is in place and the first two endpoints work. For the third one, the spec "
    "contradicts itself (page 3 says `PUT`, page 7 says `PATCH`). Which is correct?"),
    "Sorry, I can't tell which environment this should be deployed to. Staging or production?",
    ("I found three TODOs that match your description. Which one did you mean?\n\n1. `parser.py:88` – handle "
    "tabs\n2. `lexer.py:12` – unicode\n3. `cli.py:40` – exit codes"),
    ("The test suite takes a licence key that I don't have. If you can share one (or tell me to skip those tests), "
    "I'll carry on."),
    "To proceed I'd need write access to the `infra` repository. Can you grant it?",
    ("The two requirements conflict: #3 asks for optimistic locking, #5 forbids a version column. I've paused until "
    "I hear from you how to resolve this."),
    ("I could fix this by (a) bumping the dependency or (b) vendoring a patch. I'd lean towards (a), but it pulls "
    "in a new license (AGPL). Do you accept that?"),
    ("> The importer should handle the new format\n\nI looked for a sample of the new format and there isn't one in "
    "the repo. Could you attach one?"),
    "Nothing has been changed yet. Would you like me to proceed with deleting the 37 unused files listed above?",
    "This needs a product decision: should a deleted comment still count towards the total? I'll hold off until you tell me.",
    "I've hit a fork in the road. Do we support Python 3.8 or not? That decides whether I can use `match`.",
    "I have everything I need except the webhook secret. Send it over and I'll wire it up.",
    "Done with the analysis; no code was changed. Should I implement option 2?",
    "All tests pass locally, but deploying needs your approval. Shall I deploy to production now?",
    "Tests pass so far. However I can't run the integration tests without Docker. How should I proceed?",
    "It looks like the branch was force-pushed while I was working. Do you want me to keep my version or take theirs?",
    "I'd like to double-check one thing: is `customer_id` supposed to be nullable?",
    "I will need the following to continue:\n- The API base URL\n- A test account",
    "Which one?",
    "I can see the problem, but fixing it means changing the public API. Is that okay with you?",
)  # fmt: skip
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
    ("## Summary\n\n- Added `RetryPolicy`\n- Wired it into the client\n- 14 new tests, all passing\n\nLet me know "
    "if you'd like me to tweak the back-off defaults!"),
    ("I've fixed the race in `queue.py` and committed the change (3f2a91c).\n\nIs there anything else you'd like me "
    "to look at?"),
    "All set. The migration ran cleanly and the tests are green. Do you want me to squash the commits before you merge?",
    ("The bug was a missing await. Why didn't the tests catch it? Because they mocked the client. I replaced the "
    "mock with a real server and committed everything."),
    ("I implemented the wizard. Its second page asks:\n\n    Which plan do you want?\n    Do you accept the "
    "terms?\n\nBoth answers are validated, and the tests pass."),
    ("Apologies for the earlier mistake — I had edited the wrong file. It's fixed now, and I've pushed the branch. "
    "Would you like a walkthrough of the changes?"),
    ("Done! ✅\n\n**What changed**\n- `README.md`: new quick start\n- `docs/faq.md`: *Is it safe to run twice?* and "
    "*How do I undo it?*\n\nEverything is committed."),
    ("I wasn't certain whether you wanted snake_case or camelCase, so I followed the existing files (snake_case). "
    "If you'd rather have the other, tell me and I'll change it. All 52 tests pass."),
    ("The work is finished and committed on `feature/cache`. You may want to consider: should the TTL be "
    "configurable? That could be a follow-up."),
    "I've added the CLI flag and updated the docs. Shall I go ahead and open the pull request?",
    ("Implemented. Note that `npm audit` still reports two advisories in dev dependencies; I left them alone "
    "because they're out of scope. Want me to look into those separately?"),
    ("The refactor is complete: 12 files changed, no behaviour change, test suite green. Please review the diff "
    "when you get a chance and let me know what you think."),
    ("Fixed the typo in the error message: it now reads \"Which file do you mean?\" instead of \"Wich file do you "
    "mean?\". Committed as 9c1d2e3."),
    ("I've finished the first milestone and committed it. Next up is the importer; I'll continue with that in the "
    "next session."),
    "I checked all call sites and no change is needed: the function already handles `None`. The existing test covers it.",
    "Tests pass on 3.11 and 3.12. One open point for later: who should own the nightly job? I've noted it in `TODO.md`.",
    ("I've rewritten the onboarding prompt so that it asks the user \"What is your role?\" first and \"What do you "
    "want to build?\" second.\n\nAll snapshots are updated. Ready for your review!"),
    ("I updated the copy on the landing page. The headline is now: Ready to ship faster? The tests pass and the "
    "change is committed."),
    "The feature works end to end. If anything looks off to you, just say so and I'll adjust it.",
    ("Cleanup is done: removed 214 unused imports and committed. Would you prefer that I also enable the lint rule "
    "so they don't come back?"),
    "I've set up the project. Once you run `npm install`, everything works. Want me to add CI too?",
    "The tests are passing again. Do you want to keep the debug flag? I left it in for now.",
    "Completed. Here's how to try it:\n\n1. Run `make`\n2. Open the page\n\nDoes that match what you had in mind?",
    "I fixed it. Before you deploy, remember to set `API_KEY`. Should I document that?",
    "Wrote the quiz app. Questions included:\n1. What is a closure?\n2. What is hoisting?\n\nAll committed.",
    "The build is fixed. Until you upgrade Node, a warning is printed. Should I silence it?",
    "I created 5 unit tests and they all pass. Could you take a look and tell me if they're what you expected?",
    "Everything you asked for is in place. I'd suggest reviewing `auth.py` first. Any feedback is welcome.",
    "Committed as a1b2c3d. How about adding a changelog entry as well?",
    "The answer to \"should we cache?\" is no; I documented why and committed the note.",
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


WHICH = "Which database should I use?"


def by_tool(agent: str, message: str) -> bytes:
    """What each CLI prints when the agent asks with the tool for it, and then ends with a message."""
    listed = {"questions": [{"question": WHICH, "header": "DB", "options": [{"label": "SQLite"}]}]}
    if agent == "gemini":
        return jsonl(
            {"type": "init", "session_id": SESSION, "model": "m"},
            {"type": "tool_use", "tool_name": "ask_user", "tool_id": "a", "parameters": listed},
            {"type": "tool_result", "tool_id": "a", "status": "error", "output": "denied"},
            {"type": "message", "role": "assistant", "content": message},
            {"type": "result", "status": "success"},
        )
    if agent == "opencode":
        state = {"status": "error", "input": listed, "error": "The user dismissed this question"}
        parts = [
            ("tool_use", {"type": "tool", "tool": "question", "state": state}),
            ("text", {"type": "text", "text": message}),
            ("step_finish", {"reason": "stop", "cost": 0}),
        ]
        return jsonl(*({"type": kind, "sessionID": "s1", "part": part} for kind, part in parts))
    if agent == "copilot":
        request = {"toolCallId": "c", "name": "ask_user", "arguments": {"question": WHICH}}
        return jsonl(
            {"type": "session.start", "data": {"sessionId": SESSION}},
            {"type": "assistant.message", "data": {"content": "", "toolRequests": [request]}},
            {"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": True}},
            {"type": "assistant.message", "data": {"content": message, "toolRequests": []}},
            {"type": "result", "sessionId": SESSION, "exitCode": 0},
        )
    tool = "AskUserQuestion" if agent == "claude" else "ask_user_question"
    return jsonl(init(), uses(tool, arguments=listed), says(message), result(message))


AGENTS = ("claude", "qwen", "gemini", "opencode", "copilot")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_question_by_the_tool_for_it_has_its_words(agent: str) -> None:
    found = classify(by_tool(agent, "I could not ask."), b"", agent, 0, NOW)
    assert (found.outcome, found.words) == ("question", WHICH)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_offer_by_the_tool_after_the_work_is_no_question(agent: str) -> None:
    offer = by_tool(agent, "I added the page, and all tests pass.")
    offer = offer.replace(WHICH.encode(), b"Would you like me to open a PR?")
    assert classify(offer, b"", agent, 0, NOW).outcome == "ok"
