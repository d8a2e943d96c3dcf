"""Secrets, as tables: what is found, what is not, and that nothing of one is ever told.

Every secret here is put together at run time, so that no scanner takes this file for a leak.
"""

from base64 import b64encode
from random import Random

import pytest

from benchmarks.secret_corpus import FORMS, HARMLESS, TOKENS, WHOLE
from guard.core.rescue.secret_rules import RULES
from guard.core.rescue.secrets import (
    describe_hits,
    find_added_secrets,
    find_secrets,
    has_sensitive_name,
    is_allowed,
)
from tests.support.cost import cpu_limit

A = "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7"
HEX = "3f9a0c7e51d84b26"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" + A
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}\n"
BASIC = b64encode(f"robot:{A[:9]}".encode()).decode()
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI5MzcxMDQifQ." + A + A
FOUND: dict[str, list[str]] = {
    "anthropic": ["sk-ant-api03-" + A],
    "openai": ["sk-" + A[:20] + "T3BlbkFJ" + A[:20]],
    "openai_project": [f"sk-{kind}-" + A for kind in ("proj", "svcacct", "admin")],
    "openrouter": ["sk-or-v1-" + HEX * 4],
    "groq": ["gsk_" + (A + A)[:52]],
    "xai": ["xai-" + (A * 3)[:80]],
    "replicate": ["r8_" + (A + A)[:37]],
    "hugging_face": ["hf_" + (A + A)[:34]],
    "github": [f"gh{kind}_" + (A + A)[:36] for kind in "pousr"],
    "github_fine_grained": ["github_pat_" + A[:22] + "_" + (A * 3)[:59]],
    "gitlab": ["glpat-" + A[:20], "glrt-" + A[:20], "gldt-" + A[:20], "glptt-" + (HEX * 3)[:40]],
    "aws_access_key": ["AKIA" + "QW7RT2YP" * 2],
    "aws_session_key": ["ASIA" + "QW7RT2YP" * 2],
    "aws_secret_key": ["aws_secret_access_key = " + (A + A)[:38] + "/+"],
    "slack": ["xox" + "b-823741928374-" + A, "xapp-1-A07XKQ2PLM-7312904817263-" + HEX * 4],
    "slack_webhook": ["https://hooks.slack.com/services/T0741ABCD/B0632ABCD/" + A[:24]],
    "google": ["AIza" + (A + A)[:35]],
    "google_oauth": ["GOCSPX-" + (A + A)[:28]],
    "npm": ["npm_" + (A + A)[:36]],
    "pypi": ["pypi-AgEIcHlwaS5vcmc" + A * 3],
    "rubygems": ["rubygems_" + HEX * 3],
    "docker": ["dckr_pat_" + A],
    "stripe": ["sk_live_" + A, "rk_live_" + A],
    "stripe_webhook": ["whsec_" + (A + A)[:32]],
    "sendgrid": ["SG." + A[:22] + "." + (A + A)[:43]],
    "twilio": ["SK" + HEX * 2],
    "mailgun": ["key-" + HEX * 2],
    "telegram": ["7391827364:AA" + (A + A)[:33]],
    "digitalocean": [f"do{kind}_v1_" + HEX * 4 for kind in "por"],
    "databricks": ["dapi" + HEX * 2],
    "shopify": [f"shp{kind}_" + HEX * 2 for kind in ("at", "ca", "pa", "ss")],
    "linear": ["lin_api_" + (A + A)[:40]],
    "notion": ["ntn_" + (A + A)[:46]],
    "grafana": ["glsa_" + (A + A)[:32] + "_" + HEX[:8]],
    "vault": ["hvs." + A],
    "terraform": [A[:14] + ".atlasv1." + (A * 3)[:67]],
    "doppler": [f"dp.{kind}." + (A + A)[:43] for kind in ("pt", "st", "ct", "sa")],
    "sentry": ["sntryu_" + HEX * 4, "sntrys_" + A * 3],
    "supabase": ["sbp_" + (HEX * 3)[:40]],
    "planetscale": ["pscale_tkn_" + (A + A)[:43], "pscale_pw_" + (A + A)[:43]],
    "atlassian": ["ATATT3xFfGF0" + A * 3],
    "new_relic": ["NRAK-" + "QW7RT2YPX" * 3],
    "postman": ["PMAK-" + (HEX + HEX)[:24] + "-" + (HEX * 3)[:34]],
    "age": ["AGE-SECRET-KEY-1" + ("QW7RT2YPX" * 7)[:58]],
    "azure": ["AccountKey=" + (A * 4)[:86] + "==", "SharedAccessKey=" + (A * 2)[:43] + "="],
    "jwt": [JWT],
    "private_key": [KEY, KEY.replace("\n", "\\n"), b64encode(KEY.encode()).decode()],
    "url_with_password": [
        f"postgres://service:{A[:8]}@db.example.com/app",
        f"redis://:{A[:8]}@cache.acme.io",
        "mysql://app:" + "winter@10.0.0.7/app",
    ],
    "basic_auth": [f'"auth": "{BASIC}"', f"Authorization: Basic {BASIC}", f"_auth={BASIC}"],
    "bearer": [f"Authorization: Bearer {A}"],
    "npmrc": [f"//npm.acme.io/:_authToken={A}", f"//npm.acme.io/:_password={A}"],
    "netrc": [f"machine api.acme.io login robot password {A[:9]}"],
    "login": [f"username = robot\npassword = {A[:9]}"],
    "assigned_secret": [
        f'api_key = "{A}"',
        f"clientSecret: '{A}'",
        f'\\"access_token\\": \\"{A}\\"',
        f"ACME_API_KEY={A}",
        f"export TOKEN={A}",
        f'PASSWORD: str = "{A[:12]}"',
        f"  db.password: {A[:12]}\r\n",
        f'config["secret"] = "{HEX}{HEX}"',
    ],
}
CASES = [(rule, text) for rule, texts in FOUND.items() for text in texts]
IDS = [f"{rule}-{number}" for rule, texts in FOUND.items() for number in range(len(texts))]


def rules_of(text: str | bytes) -> list[str]:
    return [one.rule for one in find_secrets(text.encode() if isinstance(text, str) else text)]


@pytest.mark.parametrize(("rule", "text"), CASES, ids=IDS)
@pytest.mark.parametrize("around", ["{}", "first\n{}\nlast\n", "\u00e9\n{}\n\u00e9"])
def test_a_secret_is_found_wherever_it_stands(rule: str, text: str, around: str) -> None:
    assert rule in rules_of(around.format(text))


@pytest.mark.parametrize(("rule", "text"), CASES, ids=IDS)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_secret_is_found_in_wide_characters(rule: str, text: str, encoding: str) -> None:
    assert rule in rules_of(f"the first line, ünïcödé\r\n{text}\r\n".encode(encoding))


# In a token of Discord's nothing is fixed: it is found only where a name before it says what it is.
@pytest.mark.parametrize("kind", sorted(set(TOKENS) - {"discord"}))
def test_a_token_is_found_in_every_kind_of_file(kind: str) -> None:
    random = Random(kind)
    missed = [
        name for name, form in FORMS.items() if not rules_of(form(random, TOKENS[kind](random)))
    ]
    assert missed == []


@pytest.mark.parametrize("kind", WHOLE)
def test_most_secrets_are_found_that_only_a_name_gives_away(kind: str) -> None:
    random = Random(kind)
    found = sum(bool(rules_of(WHOLE[kind][1](random))) for _ in range(200))
    assert found >= (130 if "password" in kind or kind in ("pypirc", "kubernetes secret") else 190)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_only_looks_like_a_secret_is_not_found(name: str) -> None:
    random = Random(name)
    assert [rule for _ in range(50) for rule in rules_of(HARMLESS[name](random))] == []


def test_every_rule_is_tried() -> None:
    assert set(FOUND) == {rule.name for rule in RULES} == set(NEAR)


NEAR: dict[str, str] = {
    "anthropic": "sk-ant-api03-" + "x" * 40,
    "openai": "sk-" + A[:20] + "T3BlbkFK" + A[:20],
    "openai_project": "sk-proj-your-key-goes-in-here-please",
    "openrouter": "sk-or-v1-" + HEX * 3,
    "groq": "gsk_" + A[:20],
    "xai": "xai-" + A,
    "replicate": "r8_" + (A + A)[:38],
    "hugging_face": "hf_" + (A + A)[:33],
    "github": "ghp_" + "x" * 36,
    "github_fine_grained": "github_pat_" + A,
    "gitlab": "glpat-" + A[:19],
    "aws_access_key": "AKIAIOSFODNN7" + "EXAMPLE",
    "aws_session_key": "ASIA" + "QW7RT2YP" * 2 + "X",
    "aws_secret_key": "aws_secret_access_key = os.environ",
    "slack": "xoxb-short",
    "slack_webhook": "https://hooks.slack.com/services/T00000000/B00000000/" + "X" * 24,
    "google": "AIza" + (A + A)[:36],
    "google_oauth": "GOCSPX-" + A[:20],
    "npm": "npm_config_registry_of_the_whole_company",
    "pypi": "pypi-AgEIcHlwaS5vcmc" + A,
    "rubygems": "rubygems_" + HEX,
    "docker": "dckr_pat_" + A[:20],
    "stripe": "task_live_" + A,
    "stripe_webhook": "whsec_" + A[:20],
    "sendgrid": "SG." + A[:22] + "." + A[:22],
    "twilio": "TASK" + HEX * 2,
    "mailgun": "key-" + HEX,
    "telegram": "12:AA" + (A + A)[:33],
    "digitalocean": "dop_v1_" + HEX,
    "databricks": "dapi" + HEX,
    "shopify": "shpat_" + HEX,
    "linear": "lin_api_" + A,
    "notion": "ntn_" + A,
    "grafana": "glsa_" + A,
    "vault": "hvs." + A[:20],
    "terraform": "short.atlasv1." + (A * 3)[:67],
    "doppler": "dp.pt." + A,
    "sentry": "sntryu_" + HEX,
    "supabase": "sbp_" + HEX,
    "planetscale": "pscale_tkn_" + A,
    "atlassian": "ATATT3xFfGF0" + A,
    "new_relic": "NRAK-" + "QW7RT2YPX",
    "postman": "PMAK-" + HEX + "-" + HEX,
    "age": "AGE-SECRET-KEY-1" + "QW7RT2YPX",
    "azure": "AccountKey=" + A + "==",
    "jwt": "eyJhbGciOiJIUzI1NiJ9 alone, or eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI5MzcxMDQifQ, or of every"
    " manual: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ." + A,
    "private_key": "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "url_with_password": "postgres://app:app-test-1@localhost/db",
    "basic_auth": "Authorization: Basic " + b64encode(b"user:password").decode(),
    "bearer": "Authorization: Bearer your-access-token-1234",
    "npmrc": "//npm.acme.io/:_authToken=${NPM_TOKEN_OF_ACME}",
    "netrc": "machine api.acme.io login robot password <password>",
    "login": "username = args.username\npassword = args.password2",
    "assigned_secret": f'api_key_hash = "{HEX}{HEX}"',
}


@pytest.mark.parametrize("text", NEAR.values(), ids=NEAR)
def test_a_near_miss_is_none(text: str) -> None:
    assert rules_of(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PUBLIC KEY-----\n" + BODY,
        "-----BEGIN CERTIFICATE-----\n" + BODY,
        "https://example.com/path?a=b:c@d",
        "postgres://user:password@localhost/db",
        "postgres://postgres:postgres@localhost/db",
        "postgres://app:winter@db/app",
        "redis://user:${PASSWORD}@host",
        "postgres://user:{password}@host",
        "amqp://guest:****@host",
        "git@github.com:owner/repo.git",
        "ssh://git@example.com:2222/repo",
        'token = "identifier_or_keyword_1"',
        'password = "password123"',
        f'"nextToken": "{A}"',
        f'publicKeyToken="{HEX}"',
        f'secretName: "{A}"',
        f'print("no api key"); x = "{A}"',
        f"if token == {A}:",
        'api_key = "https://acme.io/v1/a8f3k2/9dk3"',
        "0" * 4096,
        "\0" * 4096,
    ],
)
def test_what_is_no_secret_is_not_found(text: str) -> None:
    assert rules_of(text) == []


def test_only_what_was_added_counts() -> None:
    old, new = FOUND["github"][0], FOUND["anthropic"][0]
    assert find_added_secrets(old.encode(), old.encode()) == []
    assert find_added_secrets(f"x\n{old}\n{new}".encode(), old.encode()) == [("anthropic", 3)]
    assert find_added_secrets(b"\0binary\n" + new.encode(), b"") == [("anthropic", 2)]
    assert find_added_secrets(f"x\n{new}".encode("utf-16"), b"") == [("anthropic", 2)]
    assert find_added_secrets(f"x\n{old}".encode("utf-16"), old.encode()) == []


def test_another_key_beside_one_that_was_there_counts() -> None:
    other = KEY.replace("MIIEvQ", "MIIEwA")
    assert find_added_secrets((KEY + other).encode(), KEY.encode()) == [("private_key", 3)]


def test_all_hits_are_told_by_line() -> None:
    github, anthropic = FOUND["github"][0], FOUND["anthropic"][0]
    hits = find_added_secrets(f"{github}\n\n{anthropic} {anthropic}\n".encode(), b"")
    assert describe_hits(hits) == "github, line 1; anthropic, line 3"
    many = find_added_secrets(f"{github}\n".encode() * 12, b"")
    assert describe_hits(many).endswith("; github, line 8; and 4 more")


@pytest.mark.parametrize("text", [text for _, text in CASES], ids=IDS)
def test_nothing_of_a_secret_is_told(text: str) -> None:
    hits = find_added_secrets(text.encode(), b"")
    assert hits
    said = describe_hits([hit._replace(rule="rule") for hit in hits])
    assert not any(text[at : at + 8] in said for at in range(len(text) - 8))


HOSTILE = {
    "keywords": b"token",
    "starts of tokens": b" sk-ant-",
    "jwt again and again": b" eyJaaaaaaaaaaaa.eyJaaaaaaaaaaaa.",
    "jwt without an end": b" eyJ" + b"a" * 2100,
    "urls without an end": b"://" + b"a" * 60 + b":" + b"b" * 120,
    "titles of keys": b"-----BEGIN A B PRIVATE KEY-----" + b"= " * 60,
    "names without a value": b"token_abcdefghijklmno\t\t\t\t\t\t\t\t\t= \n",
    "values without an end": b"\ntoken=" + b"a1" * 130,
    "quotes without an end": b'token="' + b"a1" * 130,
    "spaces": b" \t" * 99 + b"password",
    "netrc without a password": b"machine a login " + b"b" * 190 + b" ",
    "users": b"username=a \n \n",
    "encoded titles": b"LS0tLS1CRUdJTi" + b"A" * 90,
    "hits": FOUND["assigned_secret"][0].encode() + b"\n",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_time_stays_linear(piece: bytes) -> None:
    data = piece * (5_000_000 // len(piece))
    with cpu_limit():
        assert len(find_added_secrets(data, b"")) <= 1000


@pytest.mark.parametrize("needle", sorted({one for rule in RULES for one in rule.needles}))
def test_no_needle_makes_a_rule_slow(needle: bytes) -> None:
    data = (b" " + needle) * (200_000 // len(needle))
    with cpu_limit():
        assert list(find_secrets(data)) == []


NAMES = {
    ".env": True,
    "web/.env": True,
    ".env.production": True,
    ".ENV.local": True,
    ".env.example": False,
    ".env.local.sample": False,
    ".env.template": False,
    ".envrc": False,
    "local.env": False,
    "env": False,
    ".netrc": True,
    "_netrc": True,
    ".pgpass": True,
    ".pypirc": True,
    ".npmrc": False,
    "keys/id_rsa": True,
    "id_ed25519": True,
    "id_rsa.pub": False,
    "release.p12": True,
    "release.PFX": True,
    "android/app.jks": True,
    "cert.pem": False,
    "credentials.json": False,
    ".aws/credentials": True,
    "credentials": False,
    "home/.kube/config": True,
    ".docker/config.json": True,
    "config.json": False,
}


@pytest.mark.parametrize(("path", "sensitive"), NAMES.items(), ids=NAMES)
def test_some_names_are_enough(path: str, sensitive: bool) -> None:
    assert has_sensitive_name(path.encode()) is sensitive


ALLOWED = {
    "nothing": ("", False),
    "the rule at the path": ("jwt:docs/a.md", True),
    "a glob": ("jwt:docs/*", True),
    "any rule": ("*:docs/*.md", True),
    "the second": ("npm:*, jwt:docs/*", True),
    "another rule": ("npm:docs/*", False),
    "another path": ("jwt:tests/*", False),
    "a rule alone": ("jwt", False),
    "a rule without a path": ("jwt:", False),
}


@pytest.mark.parametrize(("allowed", "lets"), ALLOWED.values(), ids=ALLOWED)
def test_the_user_lets_a_rule_pass_at_a_path(allowed: str, lets: bool) -> None:
    assert is_allowed("jwt", "docs/a.md", allowed) is lets
