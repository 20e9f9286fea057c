"""Request ids, security headers, host names, sizes of bodies, and errors nobody foresaw."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from starlette.testclient import TestClient

from core.errors import Gone, Overloaded
from query.app import create_app
from query.http.middleware import CONTENT_SECURITY_POLICY, host_name
from tests.api_world import World

LogLines = list[MutableMapping[str, Any]]


@pytest.fixture
def odd(world: World) -> Iterator[TestClient]:
    """The application with routes that misbehave."""
    app = create_app(world.services)

    @app.get("/boom")
    def boom() -> None:
        raise ZeroDivisionError("secret /etc/passwd 0x7fffdead")

    @app.get("/gone")
    def gone() -> None:
        raise Gone("it was here", hint="ask sooner")

    @app.get("/busy")
    def busy() -> None:
        raise Overloaded("busy", retry_after_s=0.2)

    @app.get("/half")
    def half() -> StreamingResponse:
        def pieces() -> Iterator[bytes]:
            yield b"first"
            raise ZeroDivisionError("secret")

        return StreamingResponse(pieces())

    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=True) as client:
        yield client


@pytest.mark.parametrize(
    "path", ["/", "/static/app.js", "/livez", "/v1/about", "/nowhere", "/v1/documents", "/boom"]
)
def test_every_response_has_the_security_headers(odd: TestClient, path: str) -> None:
    headers = odd.get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-request-id"]
    assert headers["cache-control"] == ("no-cache" if path.startswith("/static") else "no-store")
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    policy = dict(part.strip().split(" ", 1) for part in CONTENT_SECURITY_POLICY.split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    for sources in policy.values():
        allowed = {"'none'", "'self'", "blob:", "data:"}
        assert set(sources.split()) <= allowed
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"


def test_a_well_formed_request_id_is_kept(odd: TestClient) -> None:
    for offered, kept in [
        ("abc-1._Z", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("a b", False),
        ("<script>", False),
        ("", False),
    ]:
        answer = odd.get("/nowhere", headers={"x-request-id": offered})
        assert (answer.headers["x-request-id"] == offered) is kept
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_problems_have_one_shape(odd: TestClient) -> None:
    for method, path, status, code in [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/static/nothing.js", 404, "not_found"),
        ("GET", "/static/..%2fapp.py", 404, "not_found"),
        ("PUT", "/v1/documents", 405, "method_not_allowed"),
        ("GET", "/v1/documents", 401, "not_authenticated"),
        ("GET", "/gone", 410, "gone"),
        ("GET", "/busy", 429, "overloaded"),
        ("GET", "/boom", 500, "internal_error"),
    ]:
        answer = odd.request(method, path)
        assert answer.status_code == status, path
        assert answer.headers["content-type"] == "application/problem+json"
        body = answer.json()
        assert body["type"] == f"urn:pincite:error:{code}"
        assert (body["code"], body["status"]) == (code, status)
        assert body["title"]
        assert body["detail"]
        assert body["request_id"] == answer.headers["x-request-id"]
    assert odd.put("/v1/documents").headers["allow"]
    assert odd.get("/v1/documents").headers["www-authenticate"] == "Bearer"
    assert odd.get("/busy").headers["retry-after"] == "1"
    assert odd.get("/gone").json()["hint"] == "ask sooner"


def test_an_unforeseen_error_is_logged_and_not_told(odd: TestClient, log_lines: LogLines) -> None:
    answer = odd.get("/boom")
    for leaked in ("secret", "passwd", "0x7fff", "ZeroDivisionError", "Traceback", "boom"):
        assert leaked not in answer.text
    (line,) = [line for line in log_lines if line["event"] == "http.unexpected"]
    assert line["log_level"] == "error"


def test_a_response_that_breaks_off_is_not_made_to_look_whole(
    odd: TestClient, log_lines: LogLines
) -> None:
    with pytest.raises(Exception, match=r"^$"):
        odd.get("/half")
    assert any(line["event"] == "http.unexpected" for line in log_lines)


def test_validation_tells_where_and_not_what(client: TestClient) -> None:
    canary = "zanzibar-canary"
    answer = client.post("/v1/search", json={"query": "x", "limit": canary})
    assert answer.status_code == 422
    body = answer.json()
    assert body["code"] == "invalid_request"
    assert "limit" in body["detail"]
    assert canary not in answer.text


def test_one_log_line_a_request_without_its_query(
    client: TestClient, log_lines: LogLines, world: World
) -> None:
    client.get("/login", params={"code": "pcl_canary"})
    client.get("/v1/documents")
    lines = [line for line in log_lines if line["event"] == "http.request"]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("GET", "/login", 401),
        ("GET", "/v1/documents", 200),
    ]
    assert lines[1]["tenant_id"] == world.tenant_ids["documents"]
    assert "canary" not in repr(log_lines)


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:8000", True),
        ("localhost:9", True),
        ("LOCALHOST", True),
        ("[::1]:8000", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:80", False),
        ("evil.example:127.0.0.1", False),
        ("[::1].evil.example", False),
        ("127.0.0.1:x", False),
        ("", False),
        ("*", False),
    ],
)
def test_only_our_own_names_are_answered(nobody: TestClient, host: str, is_allowed: bool) -> None:
    answer = nobody.get("/v1/about", headers={"host": host})
    assert answer.status_code == (200 if is_allowed else 421)
    if not is_allowed:
        assert answer.json()["code"] == "host_not_allowed"
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
    for path in ("/login?code=x", "/metrics", "/", "/static/app.js", "/v1/documents"):
        refused = nobody.get(path, headers={"host": host}).status_code == 421
        assert refused is not is_allowed, path


def test_probes_answer_to_any_name(nobody: TestClient) -> None:
    for path in ("/livez", "/readyz"):
        assert nobody.get(path, headers={"host": "10.2.3.4:8000"}).status_code == 200


def test_the_public_url_is_allowed_by_itself(make_world: Callable[..., World]) -> None:
    world = make_world(api={"public_url": "https://Docs.Example.org:8443/x"})
    with TestClient(create_app(world.services), base_url="http://docs.example.org") as client:
        assert client.get("/v1/about").status_code == 200


def test_a_star_allows_all(make_world: Callable[..., World]) -> None:
    world = make_world(api={"allowed_hosts": ["*"]})
    with TestClient(create_app(world.services), base_url="http://any.example") as client:
        assert client.get("/v1/about").status_code == 200


def test_names_of_hosts() -> None:
    assert host_name("A.b:1") == "a.b"
    assert host_name("[::1]:80") == "[::1]"
    assert host_name("[::1]") == "[::1]"
    for malformed in ("", ":80", "[::1", "a:b", "a:1:2", "[::1]x"):
        assert host_name(malformed) == ""


@pytest.mark.parametrize("announces", [True, False])
def test_large_bodies_are_refused_before_anybody_is_asked_who_they_are(
    nobody: TestClient, world: World, announces: bool
) -> None:
    size = world.settings.api.max_body_bytes + 1
    content = b"x" * size if announces else iter([b"x" * 1000] * (size // 1000 + 1))
    answer = nobody.post(
        "/v1/answers", content=content, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"


def test_services_are_closed_with_the_application(world: World) -> None:
    app = create_app(world.services)
    assert isinstance(app, FastAPI)
    with TestClient(app):
        assert world.num_closed == []
    assert world.num_closed == [1]
