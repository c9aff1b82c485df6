"""Messages over a socketpair, with descriptors, against the synchronous side that the child programs use."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiera_mcp.sandbox.child import wire
from hiera_mcp.sandbox.launcher.channel import Channel


@asynccontextmanager
async def pair() -> AsyncGenerator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    channel = await Channel.open(ours)
    with theirs:
        yield channel, theirs
        channel.abort()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text(), json_values))
def test_a_message_arrives_as_it_was_sent_in_both_directions(message: dict[str, object]):
    async def there_and_back() -> dict[str, object]:
        async with pair() as (channel, theirs):
            await channel.send(message)
            wire.send(theirs, wire.receive(theirs)[0])
            return await channel.receive()

    assert asyncio.run(there_and_back()) == message


async def test_a_message_larger_than_the_socket_buffer_arrives_whole_and_its_descriptor_with_it():
    async with pair() as (channel, theirs):
        read_end, write_end = os.pipe()
        sending = asyncio.create_task(channel.send({"text": "x" * (4 << 20)}, (write_end,)))
        message, fds = await asyncio.to_thread(wire.receive, theirs)
        await sending
        os.write(fds[0], b"through")
        assert (len(message["text"]), os.read(read_end, 16)) == (4 << 20, b"through")
        for fd in (read_end, write_end, *fds):
            os.close(fd)


async def test_a_closed_peer_raises_closed_on_both_ways():
    async with pair() as (channel, theirs):
        theirs.close()
        with pytest.raises(wire.Closed):
            await channel.receive()
        with pytest.raises(wire.Closed):
            for _ in range(100):
                await channel.send({"text": "x" * (1 << 16)})


async def test_an_end_in_the_middle_of_a_message_is_an_end():
    async with pair() as (channel, theirs):
        theirs.sendall(wire.HEADER.pack(100) + b'{"half":')
        theirs.close()
        with pytest.raises(wire.Closed):
            await channel.receive()


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff\xfe", b"[" * 100_000])
async def test_what_is_no_json_object_is_malformed(body: bytes):
    async with pair() as (channel, theirs):
        theirs.sendall(wire.HEADER.pack(len(body)) + body)
        with pytest.raises(wire.Malformed):
            await channel.receive()


async def test_a_message_that_claims_more_than_the_limit_is_malformed_before_it_is_read():
    async with pair() as (channel, theirs):
        theirs.sendall(wire.HEADER.pack(1 << 31))
        with pytest.raises(wire.Malformed, match="more than 1000"):
            await channel.receive(limit=1000)
