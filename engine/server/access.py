"""Who may ask, and whose cache blocks are whose.

Keys are compared in constant time. A caller with the internal key may keep tenants apart itself,
with `pincite.cache_salt` and `pincite.shared_prefix_tokens`; everybody else's blocks are salted
with their own key, so that nobody learns from timing what another key has asked (contracts: engine
cache salt). Salts come from a secret of this process: blocks do not outlive it either.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.errors import InvalidRequest
from engine.server.errors import ApiError

if TYPE_CHECKING:
    from starlette.datastructures import Headers

PROBES: Final = frozenset({"/livez", "/readyz"})
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request. `salt`: of its blocks, unless it is internal and sends one itself."""

    is_internal: bool
    salt: bytes


@dataclass(frozen=True, slots=True)
class Access:
    """
    internal_key, further_keys: one of them is needed as a bearer token; none at all: no key is
        asked for.
    allowed_hosts: accepted names in the Host header, without port; None: any. On loopback this is
        what stops a web page from reaching the server by DNS rebinding.
    has_open_metrics: whether `/metrics` needs no key.
    """

    internal_key: str = ""
    further_keys: tuple[str, ...] = ()
    allowed_hosts: frozenset[str] | None = LOOPBACK_NAMES
    has_open_metrics: bool = True
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def identify(self, path: str, headers: Headers) -> Caller:
        """The caller of a request. Raises ApiError 403 for a foreign Host, 401 without a key."""
        if path in PROBES:
            return Caller(is_internal=False, salt=b"")
        self._check_host(headers.getlist("host"))
        if path == "/metrics" and self.has_open_metrics:
            return Caller(is_internal=False, salt=b"")
        if not (self.internal_key or self.further_keys):
            return Caller(is_internal=False, salt=self._salt(b"key", b""))
        given = _bearer_token(headers.get("authorization", "")).encode()
        is_internal = _is_same(given, self.internal_key)
        # every key is compared, so that the time does not tell which one came close
        is_known = any([is_internal, *[_is_same(given, key) for key in self.further_keys]])
        if not given or not is_known:
            raise ApiError(401, "Incorrect API key provided.", code="invalid_api_key")
        return Caller(is_internal=is_internal, salt=self._salt(b"key", given))

    def salt_of(self, text: str) -> bytes:
        """The salt for what an internal caller sent as `cache_salt`: never that of a key."""
        return self._salt(b"sent", text.encode())

    def _check_host(self, hosts: list[str]) -> None:
        if self.allowed_hosts is None:
            return
        if len(hosts) != 1 or _host_name(hosts[0]) not in self.allowed_hosts:
            raise ApiError(403, "this Host header is not allowed", code="host_not_allowed")

    def _salt(self, origin: bytes, value: bytes) -> bytes:
        return hashlib.blake2b(
            origin + b"\0" + value, key=self._secret, digest_size=_SALT_BYTES
        ).digest()


def make_access(
    host: str, internal_key: str, further_keys: tuple[str, ...], allowed_hosts: tuple[str, ...] = ()
) -> Access:
    """The rules for a server bound to `host`.

    Raises InvalidRequest for a server without any key on an address that others can reach.
    """
    is_on_loopback = is_loopback(host)
    if not (internal_key or further_keys or is_on_loopback):
        raise InvalidRequest(
            f"refusing to serve on {host} without an API key: set PINCITE_ENGINE__API_KEY, "
            "or bind to 127.0.0.1",
            param="host",
        )
    names = LOOPBACK_NAMES | {name.lower() for name in (host, *allowed_hosts)}
    is_restricted = is_on_loopback or bool(allowed_hosts)
    return Access(internal_key, further_keys, names if is_restricted else None, is_on_loopback)


def is_loopback(host: str) -> bool:
    """Whether an address or name to bind to is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _host_name(host: str) -> str:
    """In lower case, without the port; IPv6 keeps its brackets. Empty for what is no host."""
    match = _HOST.fullmatch(host.lower())
    return match[1] if match else ""


def _bearer_token(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _is_same(given: bytes, key: str) -> bool:
    return hmac.compare_digest(given, key.encode()) and bool(key)
