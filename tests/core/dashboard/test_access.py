"""The requests that the dashboard refuses from every sender."""

import pytest

from guard.core.dashboard.access import Knock, find_refusal

OWN = "127.0.0.1:8421"
PORT = 8421


@pytest.mark.parametrize(
    "knock",
    [
        Knock("GET", (OWN,)),
        Knock("GET", ("localhost:8421",)),
        Knock("GET", ("LOCALHOST:8421",)),
        Knock("GET", (OWN,), fetch_site="none", fetch_mode="navigate", fetch_dest="document"),
        Knock("GET", (OWN,), fetch_site="cross-site", fetch_mode="navigate", fetch_dest="document"),
        Knock("GET", (OWN,), fetch_site="same-origin", fetch_mode="cors", fetch_dest="empty"),
        Knock("POST", (OWN,), f"http://{OWN}", "same-origin", "navigate", "document"),
    ],
)
def test_what_its_own_pages_and_a_person_send_goes_on(knock: Knock) -> None:
    assert find_refusal(knock, PORT) is None


@pytest.mark.parametrize(
    "knock",
    [
        Knock("GET", ()),
        Knock("GET", ("",)),
        Knock("GET", ("127.0.0.1",)),
        Knock("GET", ("127.0.0.1:80",)),
        Knock("GET", ("rebound.example:8421",)),
        Knock("GET", ("127.0.0.1.rebound.example:8421",)),
        Knock("GET", (OWN, "rebound.example:8421")),
        Knock("GET", (OWN, OWN)),
        Knock("GET", (OWN,), "http://elsewhere.example"),
        Knock("GET", (OWN,), "null"),
        Knock("GET", (OWN,), "http://127.0.0.1:9999"),
        Knock("GET", (OWN,), f"https://{OWN}"),
        Knock("GET", (OWN,), ""),
        Knock("POST", (OWN,)),
        Knock("POST", (OWN,), "null"),
        Knock("POST", (OWN,), f"http://{OWN}", "cross-site", "navigate", "document"),
        Knock("GET", (OWN,), None, "cross-site", "no-cors", "script"),
        Knock("GET", (OWN,), None, "same-site", "no-cors", "image"),
        Knock("GET", (OWN,), None, "same-site", "navigate", "iframe"),
    ],
)
def test_what_comes_from_elsewhere_is_refused(knock: Knock) -> None:
    assert find_refusal(knock, PORT)


def test_a_browser_leaves_the_usual_port_out() -> None:
    assert find_refusal(Knock("GET", ("127.0.0.1",)), 80) is None
