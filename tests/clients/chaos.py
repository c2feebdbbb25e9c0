"""Clients that behave badly, against a served graph: killed in the middle, silent, not reading, sending garbage. A good one on
the same server gets all that is its own (how late is told, not judged), and afterwards the server holds no more than before.

Usage: chaos.py PATH_OF_omni-flow. Needs websockets.
"""

import asyncio
import base64
import json
import pathlib
import random
import socket
import struct
import sys
import time
import urllib.request

import websockets

from served import LONG, served

ECHO = "/v1/realtime?duplex=1"
# 20 ms of 16 kHz audio that is not silence.
FRAME = base64.b64encode(struct.pack("<h", 9000) * 320).decode()
APPEND = json.dumps({"type": "input_audio_buffer.append", "audio": FRAME})


def metrics(url):
    with urllib.request.urlopen(f"{url}/metrics", timeout=LONG) as page:
        lines = page.read().decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def held(url):
    """Sessions, open files, and resident MiB."""
    all_of = metrics(url)
    sessions = sum(v for n, v in all_of.items() if n.startswith("omni_flow_sessions{"))
    return sessions, all_of["process_open_fds"], all_of["process_resident_memory_bytes"] / 2**20


def ws(url):
    return url.replace("http", "ws", 1) + ECHO


async def talk(url, seconds, rng=None):
    """Talks at its pace; gives the lateness of what comes back, in ms."""
    late, got = [], 0
    async with websockets.connect(ws(url), max_size=None) as client:
        begun = time.monotonic()

        async def hear():
            nonlocal got
            async for message in client:
                event = json.loads(message)
                if event["type"] == "response.output_audio.delta":
                    late.append((time.monotonic() - begun - got * 0.02) * 1000)
                    got += 1

        ear = asyncio.create_task(hear())
        for i in range(int(seconds * 50)):
            await client.send(APPEND)
            await asyncio.sleep(max(0, begun + (i + 1) * 0.02 - time.monotonic()))
        # Every frame comes back, however busy the machine is.
        while got < int(seconds * 50) - 2 and time.monotonic() - begun < LONG:
            await asyncio.sleep(0.1)
        ear.cancel()
    return late


def raw(url):
    """A WebSocket of which nobody reads anything beyond the handshake."""
    host, port = url.split("://")[1].split(":")
    peer = socket.create_connection((host, int(port)), timeout=LONG)
    key = base64.b64encode(random.randbytes(16)).decode()
    peer.sendall(
        f"GET {ECHO} HTTP/1.1\r\nhost: {host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
        f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n".encode()
    )
    return peer


def masked(payload, opcode=1):
    size = len(payload)
    head = bytes([0x80 | opcode])
    head += bytes([0x80 | size]) if size < 126 else struct.pack("!BH", 0xFE, size) if size < 65536 else struct.pack("!BQ", 0xFF, size)
    return head + bytes(4) + payload


async def killed(url, rng, index):
    """A conversation that ends anywhere, in one of the ways in which they end."""
    peer = await asyncio.to_thread(raw, url)
    try:
        for _ in range(rng.randrange(1, 20)):
            await asyncio.to_thread(peer.sendall, masked(APPEND.encode()))
            await asyncio.sleep(rng.random() * 0.02)
        if index % 3 == 0:
            # In the middle of a frame.
            peer.sendall(masked(APPEND.encode())[:300])
        if index % 2 == 0:
            # Reset, not closed.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    finally:
        peer.close()


async def kills(url, rng):
    for first in range(0, 200, 20):
        await asyncio.gather(*(killed(url, rng, first + i) for i in range(20)))


async def deaf(url, rng):
    """Two that send and do not read, one for ten seconds and one until the end."""
    peers = [await asyncio.to_thread(raw, url) for _ in range(2)]
    for peer in peers:
        peer.setblocking(False)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for peer in peers:
            try:
                peer.send(masked(APPEND.encode()))
            except (BlockingIOError, OSError):
                pass
        await asyncio.sleep(0.005)
    for peer in peers:
        peer.close()


async def garbage(url, rng):
    """Ten megabytes a second of what is no message, for five seconds."""
    kinds = [
        lambda: (masked(rng.randbytes(50_000), 2)),
        lambda: (masked(("x" * 50_000).encode())),
        lambda: (masked(json.dumps({"type": rng.choice(["a", 1, None, [], {}]), "audio": "%" * 40_000}).encode())),
        lambda: (masked(json.dumps({"type": "input_audio_buffer.append", "audio": [[[1]] * 5000]}).encode())),
        lambda: (masked(b"\xff\xfe" * 20_000)),
        lambda: rng.randbytes(50_000),
    ]
    peer, sent, begun = None, 0, time.monotonic()
    while time.monotonic() - begun < 5:
        try:
            if peer is None:
                peer = await asyncio.to_thread(raw, url)
                peer.settimeout(0.5)
            piece = rng.choice(kinds)()
            await asyncio.to_thread(peer.sendall, piece)
            sent += len(piece)
        except OSError:
            if peer:
                peer.close()
            peer = None
        await asyncio.sleep(max(0, begun + sent / 10e6 - time.monotonic()))
    if peer:
        peer.close()


async def huge(url, rng):
    """Frames of 64 MiB, and one that says it is larger than that."""
    for size in (64 << 20, 2**62):
        try:
            peer = await asyncio.to_thread(raw, url)
            peer.settimeout(5)
            peer.sendall(struct.pack("!BBQI", 0x81, 0xFF, size, 0))
            piece = b"x" * (1 << 20)
            for _ in range(64):
                await asyncio.to_thread(peer.sendall, piece)
        except OSError:
            pass
        finally:
            peer.close()


async def half_open(url, rng):
    """Connections that say nothing, or half of a request, a byte at a time."""
    host, port = url.split("://")[1].split(":")
    peers = [socket.create_connection((host, int(port)), timeout=LONG) for _ in range(60)]
    for byte in b"GET /v1/realtime HTTP/1.1\r\nx: ":
        for peer in peers[::2]:
            try:
                peer.send(bytes([byte]))
            except OSError:
                pass
        await asyncio.sleep(0.1)
    await asyncio.sleep(9)
    for peer in peers:
        peer.close()


async def storm(url):
    for name, trouble in [("200 kills", kills), ("deaf", deaf), ("garbage", garbage), ("huge", huge), ("half-open", half_open)]:
        rng = random.Random(name)
        begun = time.monotonic()
        good = asyncio.create_task(talk(url, 8))
        await trouble(url, rng)
        late = sorted(await good)
        p99 = late[len(late) * 99 // 100]
        assert len(late) >= 398, (name, len(late))
        print(f"ok  {name}: {time.monotonic() - begun:.0f} s, the good one p50 {late[len(late) // 2]:.1f} ms, p99 {p99:.1f} ms", flush=True)


async def main(url):
    # The same once before, so that what is only kept for later is there.
    await kills(url, random.Random("warm"))
    await storm(url)
    base = held(url)
    await storm(url)
    for _ in range(120):
        now = held(url)
        if now[0] == 0 and now[1] <= base[1] + 2:
            break
        await asyncio.sleep(0.5)
    print(f"held before: {base}, after: {now}", flush=True)
    assert now[0] == 0 and now[1] <= base[1] + 2 and now[2] <= base[2] * 1.3 + 16, (base, now)
    assert len(await talk(url, 1)) > 40, "it goes on"


if __name__ == "__main__":
    with served(sys.argv[1], "echo", "--set", "session.disconnect-grace=1s") as address:
        asyncio.run(main(address))
    print("ok  nothing is left")
