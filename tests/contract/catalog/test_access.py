"""Tenants and keys."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from core.adapters.catalog import SqlCatalog
from core.domain.access import Principal, Scope
from core.errors import Conflict, NotAuthenticated, NotFound
from tests.fakes.clock import FakeClock

SCOPES = frozenset({Scope.SEARCH, Scope.INGEST})


def test_a_tenant_is_made_once(catalog: SqlCatalog) -> None:
    with ThreadPoolExecutor(6) as pool:
        made = set(pool.map(lambda _: catalog.access.ensure_tenant("acme"), range(12)))
    assert len(made) == 1
    other = catalog.access.ensure_tenant("other")
    assert catalog.operations.tenants() == sorted([*made, other])


def test_a_key_authenticates_with_what_it_was_made_for(
    catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    created = catalog.access.create_key(
        principal.tenant_id, name="laptop", scopes=SCOPES, collections=frozenset({"hr"})
    )
    assert created.secret is not None
    assert re.fullmatch(r"pck_[A-Za-z0-9_-]{43}", created.secret)
    found = catalog.access.authenticate(created.secret)
    assert found == Principal(
        principal.tenant_id, f"key:{created.key_id}", SCOPES, frozenset({"hr"})
    )
    assert found.key_id == created.key_id
    assert catalog.access.authenticate(created.secret) == found
    (listed,) = catalog.access.keys(principal)
    assert (listed.name, listed.scopes, listed.collections) == ("laptop", SCOPES, frozenset({"hr"}))
    assert listed.secret is None
    assert (listed.created_at, listed.expires_at) == (clock.now(), None)


@pytest.mark.parametrize("secret", ["", "pck_", "pck_" + "x" * 43, "\0", "\udc80", "ä" * 5_000])
def test_an_unknown_secret_is_refused(
    catalog: SqlCatalog, principal: Principal, secret: str
) -> None:
    catalog.access.create_key(principal.tenant_id, name="k", scopes=SCOPES)
    with pytest.raises(NotAuthenticated) as caught:
        catalog.access.authenticate(secret)
    assert secret == "" or secret not in str(caught.value)


def test_a_key_ends_at_its_expiry(
    catalog: SqlCatalog, principal: Principal, clock: FakeClock
) -> None:
    key = catalog.access.create_key(
        principal.tenant_id, name="session", scopes=SCOPES,
        expires_at=clock.now() + timedelta(seconds=60),
    )  # fmt: skip
    assert key.secret is not None
    clock.advance(59.0)
    catalog.access.authenticate(key.secret)
    clock.advance(1.0)
    with pytest.raises(NotAuthenticated):
        catalog.access.authenticate(key.secret)


def test_a_revoked_key_is_refused_and_stays_revoked(
    catalog: SqlCatalog, principal: Principal, stranger: Principal, clock: FakeClock
) -> None:
    key = catalog.access.create_key(principal.tenant_id, name="k", scopes=SCOPES)
    assert key.secret is not None
    with pytest.raises(NotFound):
        catalog.access.revoke_key(stranger, key.key_id)
    catalog.access.authenticate(key.secret)
    catalog.access.revoke_key(principal, key.key_id)
    revoked_at = clock.now()
    clock.advance(5.0)
    catalog.access.revoke_key(principal, key.key_id)
    with pytest.raises(NotAuthenticated):
        catalog.access.authenticate(key.secret)
    assert [one.revoked_at for one in catalog.access.keys(principal)] == [revoked_at]
    assert catalog.access.keys(stranger) == []


def test_a_single_use_code_lets_one_of_many_in(catalog: SqlCatalog, principal: Principal) -> None:
    code = catalog.access.create_key(
        principal.tenant_id, name="login", scopes=SCOPES, is_single_use=True
    )
    assert code.secret is not None
    secret = code.secret

    def try_it(_: int) -> bool:
        try:
            catalog.access.authenticate(secret)
        except NotAuthenticated:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(try_it, range(12))) == 1
    assert not try_it(0)


def test_a_secret_made_elsewhere_may_be_registered_at_each_start(
    catalog: SqlCatalog, principal: Principal, stranger: Principal
) -> None:
    def register(tenant_id: str) -> str:
        return catalog.access.create_key(
            tenant_id, name="admin", scopes=frozenset({Scope.ADMIN}), secret="from-a-file"
        ).key_id

    first = register(principal.tenant_id)
    assert register(principal.tenant_id) == first
    assert catalog.access.authenticate("from-a-file").has(Scope.OPS)
    with pytest.raises(Conflict):
        register(stranger.tenant_id)
    catalog.access.revoke_key(principal, first)
    with pytest.raises(Conflict):
        register(principal.tenant_id)


def test_no_secret_is_in_the_database(catalog: SqlCatalog, principal: Principal) -> None:
    key = catalog.access.create_key(
        principal.tenant_id, name="k", scopes=SCOPES, secret="a very secret secret"
    )
    stored = catalog._db.read(lambda tx: tx.exec_driver_sql("SELECT * FROM keys").mappings().all())
    assert [row["key_id"] for row in stored] == [key.key_id]
    assert "a very secret secret" not in str(stored)
