"""SeaweedFS locked down: signed writes over HTTP, mutual TLS over gRPC, nothing but loopback.

Without this, anybody on the machine can delete objects through the filer's or the master's own
ports, whatever the S3 credentials are. `-disableHttp` closes the HTTP interfaces of the
filer and the master, the volume server serves only what is signed with our keys, and every gRPC
port wants a certificate of the authority made here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pincite.supervisor.ports import PortBlock
    from pincite.supervisor.secrets import StackSecrets

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
        # Here, since it is needed once and would stay in memory: 15 MB in every process of ours.
        from pincite.supervisor.certificates import make_certificates

        certificates.mkdir(parents=True, exist_ok=True)
        for name, content in make_certificates().items():
            _write_private(certificates / name, content)
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


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
