"""SeaweedFS locked down: signed writes over HTTP, mutual TLS over gRPC, nothing but loopback.

Without this, anybody on the machine can delete objects through the filer's or the master's own
ports, whatever the S3 credentials are. `-disableHttp` closes the HTTP interfaces of the
filer and the master, the volume server serves only what is signed with our keys, and every gRPC
port wants a certificate of the authority made here.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

    from pincite.supervisor.ports import PortBlock
    from pincite.supervisor.secrets import StackSecrets

_VALID_DAYS = 3650
_COMPONENTS = (
    "master", "volume", "filer", "s3", "admin", "worker", "client", "mq", "msg_broker", "msg_agent",
)  # fmt: skip


def seaweed_arguments(binary: str, directory: Path, ports: PortBlock) -> list[str]:
    """The command line of `weed mini`; credentials and buckets go by environment."""
    return [
        binary, "mini", f"-dir={directory}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-disableHttp",
        f"-s3.port={ports.s3}", "-s3.port.iceberg=0", "-s3.port.lance=0",
        "-s3.autoCreateBucket=false", f"-s3.localSocket={directory}/s3.sock",
        f"-master.port={ports.weed_master}", "-master.telemetry=false",
        f"-volume.port={ports.weed_volume}",
        f"-filer.port={ports.weed_filer}", f"-filer.localSocket={directory}/filer.sock",
        f"-admin.port={ports.weed_admin}", "-admin.ui=false", "-webdav=false",
    ]  # fmt: skip


def write_security(directory: Path, secrets: StackSecrets) -> None:
    """security.toml (read from the working directory) and, once, the certificates."""
    certificates = directory / "certificates"
    if not (certificates / "stack.crt").exists():
        _make_certificates(certificates)
    signing_keys = {
        "jwt.signing": secrets.volume_write_key,
        "jwt.signing.read": secrets.volume_read_key,
        "jwt.filer_signing": secrets.filer_write_key,
        "jwt.filer_signing.read": secrets.filer_read_key,
    }
    lines = [f'[{section}]\nkey = "{key}"' for section, key in signing_keys.items()]
    lines += ["[grpc]", f'ca = "{certificates / "authority.crt"}"']
    for component in _COMPONENTS:
        lines += [
            f"[grpc.{component}]",
            f'cert = "{certificates / "stack.crt"}"',
            f'key = "{certificates / "stack.key"}"',
        ]
    _write_private(directory / "security.toml", "\n".join(lines).encode() + b"\n")


def _make_certificates(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pincite stack authority")])
    authority = (
        _certificate(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pincite stack")])
    loopback = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    )
    certificate = (
        _certificate(name, authority_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(loopback, critical=False)
        .sign(authority_key, hashes.SHA256())  # the authority's key is then forgotten
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_private(directory / "authority.crt", authority.public_bytes(pem))
    _write_private(directory / "stack.key", private)
    _write_private(directory / "stack.crt", certificate.public_bytes(pem))


def _certificate(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
    )


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
