"""The secrets of one dashboard: the token of its address, the cookie that a browser gets for it, and the token of its forms."""

import hmac
from hashlib import sha256
from secrets import token_urlsafe


class DashboardKeys:
    """Made anew for each start; none can be told from another."""

    def __init__(self) -> None:
        self.token = token_urlsafe(32)
        self.cookie = self._derive("cookie")
        self.form_token = self._derive("form")

    def _derive(self, use: str) -> str:
        return hmac.new(self.token.encode(), use.encode(), sha256).hexdigest()

    def cookie_name(self, port: int) -> str:
        """Return the name of the cookie: browsers send cookies to every port of a host."""
        return f"guard-{port}"

    def is_token(self, given: str) -> bool:
        return _is_same(given, self.token)

    def is_cookie(self, given: str) -> bool:
        return _is_same(given, self.cookie)

    def is_form_token(self, given: str) -> bool:
        return _is_same(given, self.form_token) or self.is_token(given)


def _is_same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), wanted.encode())
