"""Secrets, as tables: what is found, what is not, and that nothing of one is ever told."""

import time

import pytest

from guard.core.secrets import added_secret, secrets_in

A = "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7"
FOUND = {
    "anthropic": f"sk-ant-api03-{A}",
    "openai_project": f"sk-proj-{A}",
    "openai": "sk-" + "a1" * 10 + "T3BlbkFJ" + "b2" * 10,
    "github": "ghp_" + "a1B2" * 9,
    "github_fine_grained": "github_pat_" + "a1B2c" * 16,
    "gitlab": "glpat-" + "a1B2" * 5,
    "aws_access_key": "AKIA" + "ABCD2345" * 2,
    "aws_session_key": "ASIA" + "ABCD2345" * 2,
    "slack": "xoxb-123456789012-abcdef",
    "slack_webhook": "https://hooks.slack.com/services/T0000ABCD/B0000ABCD/xyz",
    "google": "AIza" + "a1B2c" * 7,
    "npm": "npm_" + "a1B2" * 9,
    "pypi": "pypi-AgEIcHlwaS5vcmc" + "a1" * 40,
    "stripe": "sk_live_" + "a1" * 12,
    "hugging_face": "hf_" + "a1" * 17,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1g",
    "private_key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "url_with_password": "postgres://service:h7Kd92pQ@db.example.com/app",
}


@pytest.mark.parametrize(("rule", "text"), FOUND.items(), ids=FOUND.keys())
@pytest.mark.parametrize("around", ["{}", 'KEY = "{}"\n', "export TOKEN={};", "\u00e9{}\u00e9"])
def test_a_secret_is_found_wherever_it_stands(rule: str, text: str, around: str) -> None:
    found = list(secrets_in(around.format(text).encode()))
    assert rule in [secret.rule for secret in found]


@pytest.mark.parametrize(
    "text",
    [
        "sk-ant-",
        "sk-ant-xxxx is what a key looks like",
        "AKIAIOSFODNN7EXAMPLES",
        "task_live_" + "a1" * 20,
        "ghp_short",
        "eyJhbGciOiJIUzI1NiJ9 alone",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "https://example.com/path?a=b:c@d",
        "postgres://user:password@localhost/db",
        "postgres://postgres:postgres@localhost/db",
        "redis://user:${PASSWORD}@host",
        "postgres://user:{password}@host",
        "amqp://guest:****@host",
        "git@github.com:owner/repo.git",
        "ssh://git@example.com:2222/repo",
        "0" * 4096,
    ],
)
def test_what_is_no_secret_is_not_found(text: str) -> None:
    assert list(secrets_in(text.encode())) == []


def test_only_what_was_added_counts() -> None:
    old, new = FOUND["github"], FOUND["anthropic"]
    assert added_secret(old.encode(), old.encode()) is None
    assert added_secret(f"x\n{old}\n{new}".encode(), old.encode()) == "anthropic, line 3"
    assert added_secret(b"\0binary\n" + new.encode(), b"") == "anthropic, line 2"


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND.keys())
def test_nothing_of_a_secret_is_told(text: str) -> None:
    told = added_secret(text.encode(), b"") or ""
    assert told
    assert not any(text[at : at + 8] in told for at in range(len(text) - 8))


@pytest.mark.parametrize(
    "piece",
    [b"sk-ant-", b"eyJ.eyJaaaaaaaaaaaaaaa", b"a.b://a:", b"-----BEGIN A B ", b"ghp_aAKIAxoxb-"],
)
def test_time_stays_linear(piece: bytes) -> None:
    data = piece * (2_000_000 // len(piece))
    began = time.monotonic()
    list(secrets_in(data))
    assert time.monotonic() - began < 5
