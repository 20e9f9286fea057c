"""Salts: one a key, one a sent salt, never equal, never the same in another process."""

import pytest
from starlette.datastructures import Headers

from engine.server.access import Access
from engine.server.errors import ApiError


def headers(key: str = "", host: str = "127.0.0.1:8000") -> Headers:
    found = {"host": host}
    return Headers(found | ({"authorization": f"Bearer {key}"} if key else {}))


def test_who_is_internal() -> None:
    access = Access("internal", ("a", "b"))
    assert access.identify("/v1/models", headers("internal")).is_internal
    assert not access.identify("/v1/models", headers("a")).is_internal


def test_an_empty_key_never_opens() -> None:
    for access in (Access("", ("a",)), Access("internal", ())):
        for key in ("", "nobody"):
            with pytest.raises(ApiError) as refused:
                access.identify("/v1/models", headers(key))
            assert refused.value.status == 401


def test_only_the_scheme_bearer_counts_in_any_case() -> None:
    access = Access("internal")
    given = Headers({"host": "localhost", "authorization": "bEARER internal"})
    assert access.identify("/v1/models", given).is_internal


def test_salts_differ_by_key_by_origin_and_by_process() -> None:
    access = Access("internal", ("a", "b"))
    of_keys = {access.identify("/x", headers(key)).salt for key in ("internal", "a", "b")}
    sent = {access.salt_of(text) for text in ("internal", "a", "b", "")}
    assert len(of_keys | sent) == 7
    assert all(len(salt) == 16 for salt in of_keys | sent)
    assert access.salt_of("a") == access.salt_of("a")
    assert Access("internal", ("a", "b")).salt_of("a") != access.salt_of("a")
    assert access.identify("/x", headers("a")).salt == access.identify("/x", headers("a")).salt


def test_the_secret_is_not_shown() -> None:
    assert "_secret" not in repr(Access("internal"))


def test_two_host_headers_are_refused() -> None:
    access = Access("internal")
    both = Headers(raw=[(b"host", b"127.0.0.1"), (b"host", b"evil.example")])
    with pytest.raises(ApiError) as refused:
        access.identify("/v1/models", both)
    assert refused.value.status == 403
    assert not access.identify("/readyz", both).is_internal  # an orchestrator asks by any name
