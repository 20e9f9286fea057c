"""Logging in with a single-use code, sessions, and what the service says of itself."""

from collections.abc import Callable
from http.cookies import SimpleCookie

import pytest
from starlette.testclient import TestClient

from core.domain.access import Scope
from core.ids import new_login_code
from core.settings import SOURCE_URL
from query.app import create_app
from query.http.auth import CSRF_HEADER, SESSION_COOKIE
from tests.api_world import World

OpenClient = Callable[[str | None], TestClient]
CSRF = {CSRF_HEADER: "1"}


@pytest.fixture
def code(world: World) -> str:
    return world.key(secret=new_login_code(), is_single_use=True)


def log_in(client: TestClient, code: str) -> TestClient:
    answer = client.get("/login", params={"code": code})
    assert answer.status_code == 303, answer.text
    return client


def test_a_code_becomes_a_session(nobody: TestClient, code: str) -> None:
    answer = nobody.get("/login", params={"code": code})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    cookie = SimpleCookie(answer.headers["set-cookie"])[SESSION_COOKIE]
    assert cookie["httponly"]
    assert cookie["samesite"] == "lax"
    assert cookie["path"] == "/"
    assert not cookie["secure"]  # plain http on loopback
    assert int(cookie["max-age"]) == 30 * 86_400
    assert code not in answer.headers["set-cookie"]
    assert nobody.get("/v1/me").json()["scopes"] == sorted(scope.value for scope in Scope)


def test_a_code_works_once(open_client: OpenClient, code: str) -> None:
    log_in(open_client(None), code)
    again = open_client(None).get("/login", params={"code": code})
    assert again.status_code == 401
    assert again.json()["code"] == "not_authenticated"
    assert "pincite up" in again.json()["hint"]
    assert "set-cookie" not in again.headers


def test_a_browser_gets_the_page_that_tells_what_to_do(nobody: TestClient) -> None:
    answer = nobody.get("/login?code=pcl_wrong", headers={"accept": "text/html,*/*;q=0.8"})
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert "<main" in answer.text


def test_a_link_that_is_clicked_twice_leads_to_the_page(nobody: TestClient, code: str) -> None:
    log_in(nobody, code)
    assert nobody.get("/login", params={"code": code}).headers["location"] == "/"


@pytest.mark.parametrize("what", ["", "pcl_", "nonsense", "key"])
def test_only_a_login_code_logs_in(nobody: TestClient, world: World, what: str) -> None:
    # A key in an address would be a key in histories and logs, and its session would outlive it.
    offered = world.key() if what == "key" else what
    answer = nobody.get("/login", params={"code": offered})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_an_expired_code_is_refused(nobody: TestClient, world: World) -> None:
    from datetime import timedelta

    secret = new_login_code()
    world.catalog.access.create_key(
        world.tenant_ids["documents"],
        name="login code",
        scopes=frozenset(Scope),
        expires_at=world.clock.now() + timedelta(hours=1),
        secret=secret,
        is_single_use=True,
    )
    world.clock.advance(3600)
    assert nobody.get("/login", params={"code": secret}).status_code == 401


def test_a_session_has_what_the_code_had(nobody: TestClient, world: World) -> None:
    code = world.key(Scope.SEARCH, collections=["hr"], secret=new_login_code(), is_single_use=True)
    log_in(nobody, code)
    assert nobody.get("/v1/me").json()["scopes"] == ["search"]
    assert nobody.get("/v1/me").json()["collections"] == ["hr"]
    assert nobody.post("/v1/documents?filename=a", headers=CSRF).status_code == 403


def test_a_session_ends_by_time(nobody: TestClient, world: World, code: str) -> None:
    log_in(nobody, code)
    world.clock.advance(30 * 86_400 + 1)
    assert nobody.get("/v1/me").status_code == 401


def test_logging_out_ends_the_session_everywhere(
    nobody: TestClient, open_client: OpenClient, code: str
) -> None:
    log_in(nobody, code)
    stolen = open_client(None)
    stolen.cookies.set(SESSION_COOKIE, nobody.cookies[SESSION_COOKIE])
    assert stolen.get("/v1/me").status_code == 200
    assert nobody.post("/v1/logout").status_code == 403  # no CSRF header
    answer = nobody.post("/v1/logout", headers=CSRF)
    assert answer.status_code == 204
    assert SimpleCookie(answer.headers["set-cookie"])[SESSION_COOKIE].value == ""
    assert stolen.get("/v1/me").status_code == 401


def test_logging_out_does_not_revoke_a_key(client: TestClient) -> None:
    assert client.post("/v1/logout").status_code == 204
    assert client.get("/v1/me").status_code == 200


def test_the_cookie_is_secure_behind_https(
    make_world: Callable[..., World],
) -> None:
    world = make_world(api={"public_url": "https://docs.example.org"})
    code = world.key(secret=new_login_code(), is_single_use=True)
    app = create_app(world.services)
    with TestClient(app, base_url="http://docs.example.org", follow_redirects=False) as client:
        answer = client.get("/login", params={"code": code})
    assert "secure" in answer.headers["set-cookie"].lower()


def test_about_names_the_source(nobody: TestClient) -> None:
    about = nobody.get("/v1/about").json()
    assert about == {
        "name": "Pincite",
        "version": "0.0-test",
        "license": "AGPL-3.0-or-later",
        "source": SOURCE_URL,
    }


def test_me_tells_the_limits(client: TestClient, world: World) -> None:
    me = client.get("/v1/me").json()
    assert me["max_upload_bytes"] == world.settings.api.max_upload_bytes
    assert me["max_question_chars"] == world.settings.answer.max_question_chars
    assert me["collections"] is None
