"""What an error's status, code and text mean, and which last words are a question."""

import pytest

from guard.core.classify.combine import is_permission_request
from guard.core.classify.errors import error_meaning
from guard.core.classify.question import find_question

ERRORS = {
    'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}': "transient overloaded",
    "API Error: Connection error.": "transient connection",
    "API Error: Request timed out.": "transient connection",
    "fetch failed: ECONNRESET": "transient connection",
    "getaddrinfo EAI_AGAIN api.example.com": "transient connection",
    "stream disconnected before completion: error sending request": "transient connection",
    "HTTP 503": "transient http_503",
    "502 Bad Gateway": "transient http_502",
    "unexpected status 504 Gateway Timeout": "transient http_504",
    "The model is overloaded. Please try again later.": "transient overloaded",
    "API Error: 401 {'detail':'Invalid API key'}": "auth not_logged_in",
    "Invalid API key · Please run /login": "auth not_logged_in",
    "OAuth token has expired. Please obtain a new token": "auth not_logged_in",
    "OAuth token revoked · Please run /login": "auth not_logged_in",
    "Your access token could not be refreshed. Please log in again.": "auth not_logged_in",
    "Incorrect API key provided: sk-…": "auth not_logged_in",
    "Session was not created without authentication": "auth not_logged_in",
    "This organization has been disabled.": "auth not_logged_in",
    "403 Forbidden": "auth not_logged_in",
    "Your credit balance is too low to access the API. Go to Plans & Billing": "auth billing",
    "You exceeded your current quota, please check your plan and billing details.": "auth billing",
    "402 You have no quota": "auth billing",
    "insufficient_quota": "auth billing",
    "Quota exceeded for quota metric 'Requests per day'": "limited rate_limit",
    "You exceeded your current quota, check your plan and billing. Please retry in 34s.": "limited usage_limit",
    "You have exhausted your capacity on this model. Your quota will reset after 12h": "limited usage_limit",
    "Resource has been exhausted (e.g. check quota).": "limited rate_limit",
    "Claude AI usage limit reached|1794800000": "limited usage_limit",
    "You've hit your org's monthly usage limit": "limited usage_limit",
    "You’ve reached your weekly limit for Opus": "limited usage_limit",
    "Sorry, you've exceeded your 5 hour session limits.": "limited usage_limit",
    "Spending limit reached": "limited usage_limit",
    "429 Too Many Requests": "limited rate_limit",
    "API Error: Request rejected (429)": "limited rate_limit",
    "403 API rate limit exceeded for user ID 7": "limited rate_limit",
    "Prompt is too long": "context prompt_too_long",
    "input is too long for requested model": "context prompt_too_long",
    "This model's maximum context length is 128000 tokens": "context prompt_too_long",
    "Your input exceeds the context window of this model": "context prompt_too_long",
    "Reached maximum number of turns (5)": "turn_limit max_turns",
    "Reached max session turns for this session": "turn_limit max_turns",
    "Maximum budget of $5 was spent": "budget budget_exhausted",
    "Budget has been exceeded! Current cost: 10": "budget budget_exhausted",
    "500 Internal Server Error": "crash server_error",
    "exceeded retry limit, last status: 429 Too Many Requests": "limited rate_limit",
    "something broke": None,
    "the limit of 3 files": None,
    "No conversation found with session ID: 1": None,
    "": None,
}


@pytest.mark.parametrize(("text", "expected"), ERRORS.items(), ids=[text[:60] for text in ERRORS])
def test_an_error_by_its_text(text: str, expected: str | None) -> None:
    meaning = error_meaning(text)
    assert (" ".join(meaning) if meaning else None) == expected


STATUSES = {
    (401, ""): "auth not_logged_in",
    (402, ""): "auth billing",
    (403, ""): "auth not_logged_in",
    (403, "usage limit reached"): "limited usage_limit",
    (408, ""): "transient http_408",
    (413, ""): "context prompt_too_long",
    (429, ""): "limited rate_limit",
    (429, "overloaded"): "transient overloaded",
    (429, "credit balance is too low"): "auth billing",
    (400, "credit balance is too low"): "auth billing",
    (400, ""): None,
    (404, "model not found"): None,
    (500, ""): "crash server_error",
    (500, "overloaded"): "transient overloaded",
    (502, "429 in a quoted page"): "transient http_502",
    (529, ""): "transient overloaded",
}


@pytest.mark.parametrize(("given", "expected"), STATUSES.items(), ids=str)
def test_an_error_by_its_status(given: tuple[int, str], expected: str | None) -> None:
    meaning = error_meaning(given[1], given[0])
    assert (" ".join(meaning) if meaning else None) == expected


@pytest.mark.parametrize(
    ("codes", "text", "expected"),
    [
        (("usage_limit_reached",), "", "limited usage_limit"),
        (("Rate_Limit",), "", "limited rate_limit"),
        (("rate_limit",), "You've hit your limit", "limited usage_limit"),
        (("rate_limit",), "overloaded", "transient overloaded"),
        (("usage_limit_reached",), "This service is disabled for your org", "auth billing"),
        (("billing_error",), "usage limit reached", "auth billing"),
        ((None, 7, "success", "overloaded_error"), "", "transient overloaded"),
        (("no_such_code",), "", "None"),
    ],
)
def test_an_error_by_its_code(codes: tuple[object, ...], text: str, expected: str) -> None:
    meaning = error_meaning(text, None, *codes)
    assert (" ".join(meaning) if meaning else "None") == expected


QUESTIONS = {
    "Should I use PostgreSQL or SQLite?",
    "I can do both. Which one do you prefer?",
    "**Which approach would you like me to take?**",
    "There are two ways:\n\nWhich one should I take?\n\n1. the short one\n2. the long one",
    "Please choose one:\n- main\n- release",
    "Before I go on: shall I drop the old table?",
    "Is it okay to delete the branch?",
    "What should the time limit be?",
    "How would you like to proceed?",
    "Could you provide the credentials for the staging server?",
    "Please confirm the name of the bucket.",
    "I need your decision before I touch the schema.",
    "I am waiting for your approval.",
    "To go on, please provide the token.",
    "Let me know which of the two you want.",
    "Do you want me to proceed with option A (yes/no)?",
    "Should I use the old parser instead?",
    "Which commit should I revert?",
}
NO_QUESTIONS = {
    "",
    "Done.",
    "All tests pass. Would you like me to do anything else?",
    "Let me know if you want anything else?",
    "Let me know if you have any questions.",
    "Would you like me to also update the docs?",
    "Should I commit these changes?",
    "Would you like me to commit this and push it?",
    "Fixed. Does that make sense?",
    "What should I do next?",
    "Why did it fail? Because the cache was stale.",
    "Should I stop? No, so I went on.",
    "How does it work?",
    "The open point is: which one is faster?",
    "I renamed `should_i_retry?` to `may_retry?`",
    "> Should I do it?",
    "The prompt now reads:\n```\nShould I continue?\n```",
    "Changed the texts:\n- Should I continue?\n- Do you want to stop?",
    "I removed the dialog that asked: please confirm the deletion of all files, then it crashed.\nAll good now.",
    "The text that says please confirm the deletion is gone.",
    "Feel free to tell me whether you want more?",
}


@pytest.mark.parametrize("text", sorted(QUESTIONS), ids=lambda text: text[:50])
def test_a_question(text: str) -> None:
    assert find_question(text)


@pytest.mark.parametrize("text", sorted(NO_QUESTIONS), ids=lambda text: text[:50])
def test_no_question(text: str) -> None:
    assert not find_question(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I need permission to run `npm test`.", True),
        ("Please approve the edit.", True),
        ("Please allow me to use the Bash tool.", True),
        ("Fixed the typo.", False),
        ("permission " + "x" * 4000, False),
    ],
    ids=["permission", "approve", "allow", "none", "long ago"],
)
def test_a_plea_for_permission(text: str, expected: bool) -> None:
    assert is_permission_request(text) == expected


@pytest.mark.parametrize("text", ["a" * 10**6, "limit " * 10**5, "(" * 10**5, "x?" * 10**5])
def test_long_texts_take_no_time(text: str) -> None:
    assert error_meaning(text) is None
    assert not find_question(text)
