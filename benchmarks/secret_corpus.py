"""Made-up secrets, true to their formats, in files as they are written; and such files without one.

Nothing here is a secret: every value is drawn from a seeded generator, so that no literal looks like one either.
"""

import json
import string
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

_DIGITS, _UPPER, _LOWER = string.digits, string.ascii_uppercase, string.ascii_lowercase
_ALNUM = string.ascii_letters + _DIGITS
_HEX = "0123456789abcdef"
_URL = _ALNUM + "_-"
_BASE64 = _ALNUM + "+/"
_PASSWORD = _ALNUM + "!#%+-_"


class File(NamedTuple):
    """A file that somebody could have written, and the kind of the secret in it."""

    kind: str
    name: str
    data: bytes


def _drawn(random: Random, letters: str, count: int) -> str:
    return "".join(random.choice(letters) for _ in range(count))


def _of(prefix: str, letters: str, count: int, suffix: str = "") -> Callable[[Random], str]:
    return lambda random: prefix + _drawn(random, letters, count) + suffix


def _jwt(random: Random) -> str:
    def part(value: object) -> str:
        return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    head = part({"alg": "HS256", "typ": "JWT"})
    body = part({"sub": _drawn(random, _DIGITS, 7), "role": "service", "exp": 1893456000})
    return f"{head}.{body}.{_drawn(random, _URL, 43)}"


def _slack(random: Random) -> str:
    numbers = "-".join(str(random.randrange(10**11, 10**13)) for _ in range(2))
    return f"{random.choice(('xoxb', 'xoxp'))}-{numbers}-{_drawn(random, _ALNUM, 24)}"


def _slack_webhook(random: Random) -> str:
    t, b = (_drawn(random, _UPPER + _DIGITS, 10) for _ in range(2))
    return f"https://hooks.slack.com/services/T{t}/B{b}/{_drawn(random, _ALNUM, 24)}"


def _url(random: Random) -> str:
    scheme = random.choice(("postgres", "mysql", "mongodb+srv", "redis", "amqps", "https"))
    host = random.choice(("db.internal.acme.io", "10.2.3.4:5432", "cluster0.abcde.mongodb.net"))
    return f"{scheme}://app:{_drawn(random, _ALNUM + '!-_', random.randint(9, 24))}@{host}/main"


def _telegram(random: Random) -> str:
    return f"{random.randrange(10**9, 10**10)}:AA{_drawn(random, _URL, 33)}"


def _discord(random: Random) -> str:
    number = b64encode(str(random.randrange(10**17, 10**18)).encode()).decode().rstrip("=")
    return f"{number}.{_drawn(random, _URL, 6)}.{_drawn(random, _URL, 38)}"


TOKENS: dict[str, Callable[[Random], str]] = {
    "anthropic": _of("sk-ant-api03-", _URL, 93, "AA"),
    "openai": lambda r: f"sk-{_drawn(r, _ALNUM, 20)}T3BlbkFJ{_drawn(r, _ALNUM, 20)}",
    "openai project": lambda r: f"sk-proj-{_drawn(r, _URL, 74)}T3BlbkFJ{_drawn(r, _URL, 74)}",
    "openai service": lambda r: f"sk-svcacct-{_drawn(r, _URL, 74)}T3BlbkFJ{_drawn(r, _URL, 74)}",
    "openrouter": _of("sk-or-v1-", _HEX, 64),
    "groq": _of("gsk_", _ALNUM, 52),
    "xai": _of("xai-", _ALNUM, 80),
    "replicate": _of("r8_", _ALNUM, 37),
    "hugging face": _of("hf_", string.ascii_letters, 34),
    "github": lambda r: f"gh{r.choice('pousr')}_{_drawn(r, _ALNUM, 36)}",
    "github fine-grained": lambda r: f"github_pat_{_drawn(r, _ALNUM, 22)}_{_drawn(r, _ALNUM, 59)}",
    "gitlab": _of("glpat-", _URL, 20),
    "gitlab runner": _of("glrt-", _URL, 20),
    "aws id": _of("AKIA", _UPPER + "234567", 16),
    "aws session id": _of("ASIA", _UPPER + "234567", 16),
    "slack": _slack,
    "slack app": lambda r: (
        f"xapp-1-A{_drawn(r, _UPPER + _DIGITS, 10)}-{r.randrange(10**12, 10**13)}-{_drawn(r, _HEX, 64)}"
    ),
    "slack webhook": _slack_webhook,
    "google": _of("AIza", _URL, 35),
    "google oauth": _of("GOCSPX-", _URL, 28),
    "npm": _of("npm_", _ALNUM, 36),
    "pypi": _of("pypi-AgEIcHlwaS5vcmc", _URL, 150),
    "rubygems": _of("rubygems_", _HEX, 48),
    "docker": _of("dckr_pat_", _URL, 27),
    "stripe": _of("sk_live_", _ALNUM, 99),
    "stripe restricted": _of("rk_live_", _ALNUM, 99),
    "stripe webhook": _of("whsec_", _ALNUM, 32),
    "sendgrid": lambda r: f"SG.{_drawn(r, _URL, 22)}.{_drawn(r, _URL, 43)}",
    "twilio": _of("SK", _HEX, 32),
    "mailgun": lambda r: f"key-{_drawn(r, _HEX, 32)}",
    "telegram": _telegram,
    "discord": _discord,
    "digitalocean": _of("dop_v1_", _HEX, 64),
    "databricks": _of("dapi", _HEX, 32),
    "shopify": _of("shpat_", _HEX, 32),
    "linear": _of("lin_api_", _ALNUM, 40),
    "notion": _of("ntn_", _ALNUM, 46),
    "grafana": lambda r: f"glsa_{_drawn(r, _ALNUM, 32)}_{_drawn(r, _HEX, 8)}",
    "vault": _of("hvs.", _URL, 95),
    "terraform": lambda r: f"{_drawn(r, _ALNUM, 14)}.atlasv1.{_drawn(r, _URL, 67)}",
    "doppler": _of("dp.pt.", _ALNUM, 43),
    "sentry": lambda r: f"sntryu_{_drawn(r, _HEX, 64)}",
    "supabase": _of("sbp_", _HEX, 40),
    "planetscale": _of("pscale_tkn_", _URL, 43),
    "atlassian": _of("ATATT3xFfGF0", _URL, 180),
    "new relic": _of("NRAK-", _UPPER + _DIGITS, 27),
    "postman": lambda r: f"PMAK-{_drawn(r, _HEX, 24)}-{_drawn(r, _HEX, 34)}",
    "age": _of("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "azure storage": lambda r: (
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey="
        f"{b64encode(r.randbytes(64)).decode()};EndpointSuffix=core.windows.net"
    ),
    "jwt": _jwt,
    "url with password": _url,
}
"""Secrets that tell by themselves what they are."""


def _python(_: Random, value: str) -> str:
    lines = ["import os", "", "TIMEOUT = 30", f'CLIENT = Client("{value}", timeout=TIMEOUT)', ""]
    return "\n".join(lines + [f"def part_{n}():\n    return {n}\n" for n in range(9)])


def _script(_: Random, value: str) -> str:
    return (
        f"const c = require('c');\nmodule.exports = c.connect({{ key: '{value}', retries: 3 }});\n"
    )


def _minified(random: Random, value: str) -> str:
    noise = ";".join(
        f"var {_drawn(random, _LOWER, 2)}=function(e){{return e+{n}}}" for n in range(99)
    )
    return f'!function(){{{noise};var q="{value}";{noise}}}();'


def _environment(_: Random, value: str) -> str:
    return f"DEBUG=1\nPORT=8080\nSERVICE_CREDENTIAL={value}\nLOG_LEVEL=info\n"


def _yaml(_: Random, value: str) -> str:
    return f"service:\n  name: app\n  replicas: 2\n  credential: {value}\n"


def _json(_: Random, value: str) -> str:
    return json.dumps({"name": "app", "options": {"credential": value, "level": 3}}, indent=2)


def _ini(_: Random, value: str) -> str:
    return f"[service]\nhost = acme.io\ncredential = {value}\nretries = 3\n"


def _markdown(_: Random, value: str) -> str:
    return (
        f"# Usage\n\nRun it with the key `{value}`:\n\n```sh\ncurl -H 'X: {value}' acme.io\n```\n"
    )


def _notebook(_: Random, value: str) -> str:
    source = ["import client\n", f'c = client.connect("{value}")\n', "c.models()"]
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}
    return json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 5}, indent=1)


FORMS: dict[str, Callable[[Random, str], str]] = {
    "app.py": _python,
    "app.js": _script,
    "app.min.js": _minified,
    "settings.env": _environment,
    "deploy.yaml": _yaml,
    "config.json": _json,
    "config.ini": _ini,
    "README.md": _markdown,
    "try.ipynb": _notebook,
}


def _key(random: Random, title: str, size: int) -> str:
    body = b64encode(random.randbytes(size)).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {title}-----", *lines, f"-----END {title}-----", ""])


def _private_key(title: str, size: int) -> Callable[[Random], str]:
    return lambda random: _key(random, title, size)


def _service_account(random: Random) -> str:
    document = {
        "type": "service_account",
        "project_id": "acme",
        "private_key_id": _drawn(random, _HEX, 40),
        "private_key": _key(random, "PRIVATE KEY", 1200),
        "client_email": "app@acme.iam.gserviceaccount.com",
    }
    return json.dumps(document, indent=2)


def _basic(random: Random) -> str:
    return b64encode(f"robot:{_drawn(random, _PASSWORD, 14)}".encode()).decode()


def _docker(random: Random) -> str:
    return json.dumps(
        {"auths": {"https://index.docker.io/v1/": {"auth": _basic(random)}}}, indent=2
    )


def _netrc(random: Random) -> str:
    return f"machine api.acme.io\n  login robot\n  password {_drawn(random, _PASSWORD, 14)}\n"


def _npmrc(random: Random) -> str:
    parts = (_drawn(random, _HEX, count) for count in (8, 4, 4, 4, 12))
    return f"registry=https://npm.acme.io/\n//npm.acme.io/:_authToken={'-'.join(parts)}\n"


def _pypirc(random: Random) -> str:
    password = _drawn(random, _PASSWORD, 14)
    return f"[acme]\nrepository = https://pypi.acme.io/\nusername = robot\npassword = {password}\n"


def _kubernetes(random: Random) -> str:
    value = b64encode(_drawn(random, _PASSWORD, 14).encode()).decode()
    head = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\n"
    return f"{head}data:\n  password: {value}\n"


def _aws_credentials(random: Random) -> str:
    ident = _drawn(random, _UPPER + "234567", 16)
    secret = _drawn(random, _BASE64, 40)
    return f"[default]\naws_access_key_id = AK_{ident}\naws_secret_access_key = {secret}\n"


def _assigned(line: str, letters: str, shortest: int, longest: int) -> Callable[[Random], str]:
    def text(random: Random) -> str:
        value = _drawn(random, letters, random.randint(shortest, longest))
        return f"# settings\ndebug = True\n{line.format(value)}\nretries = 3\n"

    return text


WHOLE: dict[str, tuple[str, Callable[[Random], str]]] = {
    "rsa key": ("server.key", _private_key("RSA PRIVATE KEY", 1190)),
    "ed25519 key": ("jwt.pem", _private_key("PRIVATE KEY", 48)),
    "ec key": ("ec.pem", _private_key("EC PRIVATE KEY", 121)),
    "openssh key": ("deploy_key", _private_key("OPENSSH PRIVATE KEY", 300)),
    "encrypted key": ("enc.pem", _private_key("ENCRYPTED PRIVATE KEY", 1300)),
    "pgp key": ("key.asc", _private_key("PGP PRIVATE KEY BLOCK", 2000)),
    "gcp service account": ("account.json", _service_account),
    "docker config": ("config.json", _docker),
    "netrc": ("netrc", _netrc),
    "npmrc": (".npmrc", _npmrc),
    "pypirc": ("pypirc", _pypirc),
    "kubernetes secret": ("secret.yaml", _kubernetes),
    "aws credentials": ("credentials", _aws_credentials),
    "api key in python": ("a.py", _assigned('API_KEY = "{}"', _ALNUM, 20, 40)),
    "password in python": ("a.py", _assigned('password = "{}"', _PASSWORD, 12, 20)),
    "short password in python": ("a.py", _assigned('db_password = "{}"', _ALNUM, 8, 10)),
    "secret in js": ("a.js", _assigned("const clientSecret = '{}';", _URL, 24, 40)),
    "secret in an object": ("a.js", _assigned("  auth: {{ secretKey: '{}' }},", _ALNUM, 24, 40)),
    "token in json": ("a.json", _assigned('  "access_token": "{}",', _HEX, 32, 40)),
    "key in yaml": ("a.yml", _assigned("api_key: {}", _HEX, 32, 32)),
    "password in yaml": ("a.yml", _assigned("  password: {}", _ALNUM, 12, 20)),
    "key in the environment": ("a.env", _assigned("ACME_API_KEY={}", _ALNUM, 20, 40)),
    "password in the environment": ("a.env", _assigned("DB_PASSWORD={}", _PASSWORD, 10, 20)),
    "exported token": ("a.sh", _assigned("export ACME_TOKEN={}", _ALNUM, 24, 40)),
    "secret in properties": ("a.properties", _assigned("app.secret={}", _ALNUM, 24, 40)),
    "basic auth header": (
        "a.sh",
        lambda r: f'curl -H "Authorization: Basic {_basic(r)}" https://acme.io\n',
    ),
    "bearer token": (
        "a.http",
        lambda r: f"GET /me HTTP/1.1\nAuthorization: Bearer {_drawn(r, _ALNUM, 40)}\n",
    ),
}
"""Secrets that only their file or the name before them gives away."""


def files_with_secrets(seed: int, rounds: int) -> Iterator[File]:
    """Every kind in every form, each time with another value."""
    random = Random(seed)
    for number in range(rounds):
        for kind, made in TOKENS.items():
            for name, form in FORMS.items():
                yield File(kind, f"{number}/{name}", form(random, made(random)).encode())
            yield from _odd(random, kind, f"{number}", made)
        for kind, (name, whole) in WHOLE.items():
            windows = whole(random).replace("\n", "\r\n")
            yield File(kind, f"{number}/{name}", whole(random).encode())
            yield File(kind, f"{number}/windows/{name}", windows.encode())
            yield File(kind, f"{number}/utf16/{name}", whole(random).encode("utf-16"))


def _odd(random: Random, kind: str, folder: str, made: Callable[[Random], str]) -> Iterator[File]:
    text = _python(random, made(random))
    yield File(kind, f"{folder}/utf16.py", text.encode("utf-16"))
    yield File(kind, f"{folder}/utf16be.py", b"\xfe\xff" + text.encode("utf-16-be"))
    around = random.randbytes(3000)
    value = made(random).encode()
    yield File(kind, f"{folder}/program.bin", b"\x7fELF" + around + b"\0" + value + b"\0" + around)


def _uuid(random: Random) -> str:
    return "-".join(_drawn(random, _HEX, count) for count in (8, 4, 4, 4, 12))


HARMLESS: dict[str, Callable[[Random], str]] = {
    "uv.lock": lambda r: f'sdist = {{ hash = "sha256:{_drawn(r, _HEX, 64)}", size = 1 }}\n',
    "package-lock.json": lambda r: f'"integrity": "sha512-{b64encode(r.randbytes(64)).decode()}"\n',
    "ids.py": lambda r: f'TOKEN_KIND = "{_uuid(r)}"\nrequest_id = "{_uuid(r)}"\n',
    "commit.txt": lambda r: f"commit {_drawn(r, _HEX, 40)}\n",
    "from_env.py": lambda _: (
        'password = os.environ["DATABASE_PASSWORD_2"]\napi_key = settings.api_key_v2\n'
    ),
    "example.env": lambda _: "API_KEY=your-api-key-here-12345\nSECRET=changeme123456789\nTOKEN=\n",
    "template.yaml": lambda _: "password: {{ .Values.db.password1 }}\ntoken: ${APP_TOKEN_V2}\n",
    "vault.yaml": lambda _: "secretName: app-tls-secret-2\nsecretKeyRef: app-credentials-v2\n",
    "form.html": lambda _: '<input name="password" id="password1" autocomplete="new-password">\n',
    "i18n.json": lambda _: '{"password": "Your password must have 8 characters and 1 digit"}\n',
    "test_login.py": lambda _: 'client.login(username="user1", password="password123")\n',
    "lexer.py": lambda _: 'token = "STRING_LITERAL_2"\nTOKEN_TYPE = "identifier_or_keyword_1"\n',
    "urls.md": lambda _: (
        "postgres://user:password@localhost/db and https://user:pass@example.com\n"
    ),
    "ssh.md": lambda _: "The file begins with `-----BEGIN OPENSSH PRIVATE KEY-----`.\n",
    "keys.md": lambda _: f"Set `sk-ant-api03-{'x' * 40}` or `ghp_{'X' * 36}`.\n",
    "image.svg": lambda r: (
        f'<image href="data:image/png;base64,{b64encode(r.randbytes(900)).decode()}"/>'
    ),
    "server.crt": lambda r: _key(r, "CERTIFICATE", 900),
    "id.pub": lambda r: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_drawn(r, _BASE64, 43)} me@acme\n",
    "packed.bin": lambda r: zlib.compress(r.randbytes(4000)).decode("latin-1"),
    "public.json": lambda r: f'{{"publicKey": "{b64encode(r.randbytes(64)).decode()}"}}\n',
}
"""What a scanner could take for a secret."""


def files_without(seed: int, rounds: int) -> Iterator[File]:
    """Files in which there is nothing to find."""
    random = Random(seed)
    for number in range(rounds):
        for name, made in HARMLESS.items():
            yield File("none", f"{number}/{name}", made(random).encode("latin-1"))
