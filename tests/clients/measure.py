"""Measures a served voice-assistant as its clients hear it: how long an answer takes, turn by turn, with one client and with
two, and how soon an interruption silences it; and the speech endpoint, streamed against whole.

Usage: measure.py PATH_OF_omni-flow [TURNS]. Needs no package but websockets. Nothing here passes or fails.
"""

import asyncio
import base64
import json
import statistics
import sys
import time
import urllib.request

import websockets

from served import PIECE, recording, served

SPEECH = recording()
SILENCE = bytes(PIECE)


def onset(pcm, level=1500):
    """Where speech begins for an ear: the first sample above `level`, in bytes."""
    samples = memoryview(pcm).cast("h")
    return next(i for i, s in enumerate(samples) if abs(s) > level) * 2


def offset(pcm, level=500):
    """Where it ends."""
    samples = memoryview(pcm).cast("h")
    return (len(samples) - next(i for i, s in enumerate(reversed(samples)) if abs(s) > level)) * 2


class Client:
    """A microphone that never stops, and what comes back with its time."""

    def __init__(self, socket):
        self.socket, self.events, self.queue = socket, [], []
        self.marks = {}
        self.news = asyncio.Event()

    async def mic(self):
        due = time.monotonic()
        while True:
            piece, mark = self.queue.pop(0) if self.queue else (SILENCE, None)
            if mark is not None:
                self.marks[mark] = time.monotonic()
            audio = base64.b64encode(piece.ljust(PIECE, b"\0")).decode()
            await self.socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            due += 0.02
            await asyncio.sleep(max(0, due - time.monotonic()))

    async def ear(self):
        async for message in self.socket:
            self.events.append((time.monotonic(), json.loads(message)))
            self.news.set()

    def say(self, pcm, mark):
        """Speaks; `mark` is the moment at which the speech has really ended, `mark-first` its first frame."""
        end = offset(pcm)
        for at in range(0, len(pcm), PIECE):
            name = f"{mark}-first" if at == 0 else mark if at <= end < at + PIECE else None
            self.queue.append((pcm[at : at + PIECE], name))

    async def until(self, kind, since=0):
        async with asyncio.timeout(120):
            while True:
                for at, event in self.events[since:]:
                    if event["type"] == kind:
                        return at, event
                self.news.clear()
                await self.news.wait()


async def talk(url, turns):
    """The time of each part of each turn, in ms."""
    async with websockets.connect(url.replace("http", "ws", 1) + "/v1/realtime", max_size=None) as socket:
        client = Client(socket)
        tasks = [asyncio.create_task(client.mic()), asyncio.create_task(client.ear())]
        await client.until("session.created")
        all_turns = []
        for turn in range(turns):
            await asyncio.sleep(0.7)
            since = len(client.events)
            client.say(SPEECH, turn)
            heard, _ = await client.until("conversation.item.input_audio_transcription.completed", since)
            word, _ = await client.until("response.output_audio_transcript.delta", since)
            sound, _ = await client.until("response.output_audio.delta", since)
            await client.until("response.done", since)
            end = client.marks[turn]
            all_turns.append([round((t - end) * 1000) for t in (heard, word, sound)])
        for task in tasks:
            task.cancel()
        return all_turns


async def interrupt(url, clip, turns):
    """From the first frame of speech sent to the last audio of the old answer received, ms."""
    async with websockets.connect(url.replace("http", "ws", 1) + "/v1/realtime", max_size=None) as socket:
        client = Client(socket)
        tasks = [asyncio.create_task(client.mic()), asyncio.create_task(client.ear())]
        await client.until("session.created")
        took = []
        for turn in range(turns):
            await asyncio.sleep(0.7)
            since = len(client.events)
            client.say(SPEECH, turn)
            _, first = await client.until("response.output_audio.delta", since)
            await asyncio.sleep(0.5)
            client.say(clip, f"stop{turn}")
            await client.until("response.done", since)
            old = first["response_id"]
            last = [t for t, e in client.events if e["type"] == "response.output_audio.delta" and e["response_id"] == old]
            done = next(e for _, e in client.events[since:] if e["type"] == "response.done")
            if done["response"]["status"] == "cancelled":
                took.append((last[-1] - client.marks[f"stop{turn}-first"]) * 1000)
            # The answer to the interruption passes.
            later = len(client.events)
            await client.until("response.done", later)
        for task in tasks:
            task.cancel()
        return [round(t) for t in took]


def spoken(url, stream):
    """Time to the first audio, and to the last, ms."""
    body = {"input": "Good morning. It is half past seven, and the sun is shining over the sea.", "response_format": "pcm"}
    if stream:
        body["stream_format"] = "audio"
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/audio/speech", json.dumps(body).encode(), headers)
    begun = time.monotonic()
    with urllib.request.urlopen(request) as answer:
        answer.read(1)
        first = time.monotonic()
        answer.read()
    return (first - begun) * 1000, (time.monotonic() - begun) * 1000


def median(name, rows):
    print(f"{name}: " + ", ".join(str(round(statistics.median(column))) for column in zip(*rows)), flush=True)


async def conversations(url, turns):
    print("from the end of speech to: heard, first word, first audio (median, ms)")
    median("  one client", await talk(url, turns))
    both = await asyncio.gather(talk(url, turns), talk(url, turns))
    median("  two clients", both[0] + both[1])
    clear = SPEECH[onset(SPEECH) // PIECE * PIECE :]
    print("from the first frame of an interruption to the last audio of the old answer (ms)")
    print("  clear onset:", await interrupt(url, clear, turns), flush=True)
    print("  soft onset:", await interrupt(url, SPEECH, turns), flush=True)


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with served(sys.argv[1], "voice-assistant") as address:
        asyncio.run(conversations(address, count))
    with served(sys.argv[1], "speak") as address:
        spoken(address, False)
        print("speech endpoint: first audio, last audio (median, ms)")
        for name, stream in [("whole", False), ("streamed", True)]:
            median(f"  {name}", [spoken(address, stream) for _ in range(2 * count)])
