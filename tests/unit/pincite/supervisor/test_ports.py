"""The block of ports: inside its range, free, and stable."""

import socket

from pincite.supervisor.ports import busy_ports, choose_block, is_free


def test_a_block_has_distinct_ports_below_the_ephemeral_range() -> None:
    block = choose_block()
    ports = block.all()
    assert len(set(ports)) == len(ports) == 15
    assert all(20_000 <= port < 32_768 for port in ports)
    named = {block.api, block.s3, block.weed_master, block.weed_volume, block.weed_filer}
    named |= {block.weed_admin, block.broker, block.index, block.models, block.engine}
    assert named <= set(ports)


def test_a_taken_port_is_named() -> None:
    # A block as the stack takes it: one built around an ephemeral port would reach, with its
    # gRPC ports 10,000 higher, past the last port there is.
    block = choose_block()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", block.broker))
        listener.listen()
        assert not is_free(block.broker)
        assert busy_ports(block) == [block.broker]
    assert is_free(block.broker)
