"""A block of ports for the stack, chosen once and kept in the data directory.

SeaweedFS puts each gRPC port 10,000 above its HTTP port, so a block is two ranges; both are
checked. The base stays below 22,000, which keeps the upper range under Linux's
ephemeral ports (32,768).
"""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

from core.errors import AlreadyRunning

BLOCK_SIZE = 16
GRPC_OFFSET = 10_000
_FIRST, _LAST = 20_000, 22_000


@dataclass(frozen=True, slots=True)
class PortBlock:
    base: int

    @property
    def api(self) -> int:
        return self.base

    @property
    def s3(self) -> int:
        return self.base + 1

    @property
    def weed_master(self) -> int:
        return self.base + 2

    @property
    def weed_volume(self) -> int:
        return self.base + 3

    @property
    def weed_filer(self) -> int:
        return self.base + 4

    @property
    def weed_admin(self) -> int:
        return self.base + 5

    @property
    def broker(self) -> int:
        return self.base + 6

    @property
    def index(self) -> int:
        return self.base + 7

    @property
    def models(self) -> int:
        return self.base + 8

    @property
    def engine(self) -> int:
        return self.base + 9

    def all(self) -> list[int]:
        """Every port the embedded processes listen on."""
        seaweed = range(self.s3, self.weed_admin + 1)
        return [*range(self.base, self.base + 10), *(port + GRPC_OFFSET for port in seaweed)]


def is_free(port: int) -> bool:
    """Whether nobody listens on that loopback port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def busy_ports(block: PortBlock) -> list[int]:
    return [port for port in block.all() if not is_free(port)]


def choose_block() -> PortBlock:
    """A block with all ports free now. Raises AlreadyRunning when there is none."""
    bases = list(range(_FIRST, _LAST, BLOCK_SIZE))
    random.shuffle(bases)
    for base in bases:
        block = PortBlock(base)
        if not busy_ports(block):
            return block
    raise AlreadyRunning(
        f"no free block of {BLOCK_SIZE} ports between {_FIRST} and {_LAST}",
        hint="stop other stacks, or set PINCITE_STACK__PORT_BASE",
    )
