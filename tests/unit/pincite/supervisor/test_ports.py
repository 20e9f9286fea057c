"""The block of ports: inside its range, free, and stable."""

import socket

from pincite.supervisor.ports import PortBlock, busy_ports, choose_block, is_free


def test_a_block_has_distinct_ports_below_the_ephemeral_range() -> None:
    block = choose_block()
    ports = block.all()
    assert len(set(ports)) == len(ports) == 14
    assert all(20_000 <= port < 32_768 for port in ports)
    named = {block.api, block.s3, block.weed_master, block.weed_volume, block.weed_filer}
    named |= {block.weed_admin, block.broker, block.index, block.models}
    assert named <= set(ports)


def test_a_taken_port_is_named() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert not is_free(port)
        assert busy_ports(PortBlock(port - 6)).count(port) == 1
    assert is_free(port)
