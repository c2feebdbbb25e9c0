"""Drives a served voice-assistant with the unmodified Realtime model of LiveKit Agents, as its AgentSession does.

Usage: livekit_client.py PATH_OF_omni-flow
"""

import asyncio
import sys

from livekit import rtc
from livekit.agents import llm
from livekit.plugins import openai

from served import LONG, PIECE, recording, served

SPEECH = recording()


class Talk:
    """One session and what it was told."""

    def __init__(self, url):
        self.model = openai.realtime.RealtimeModel(base_url=f"{url}/v1", api_key="none", voice="alloy")
        self.session = self.model.session()
        self.generations, self.heard, self.errors = asyncio.Queue(), asyncio.Queue(), []
        self.started = asyncio.Event()
        self.session.on("generation_created", self.generations.put_nowait)
        self.session.on("input_audio_transcription_completed", self.transcript)
        self.session.on("input_speech_started", lambda _: self.started.set())
        self.session.on("error", self.errors.append)

    def transcript(self, event):
        if event.is_final:
            self.heard.put_nowait(event.transcript)

    async def say(self, pcm):
        """Speaks as a microphone does."""
        for at in range(0, len(pcm), PIECE):
            piece = pcm[at : at + PIECE].ljust(PIECE, b"\0")
            self.session.push_audio(rtc.AudioFrame(piece, 24_000, 1, PIECE // 2))
            await asyncio.sleep(0.02)

    async def generation(self):
        """The words and the samples of the next answer."""
        async with asyncio.timeout(LONG):
            created = await self.generations.get()
            words, samples = [], 0

            async def read(stream):
                async for word in stream:
                    words.append(str(word))

            async for message in created.message_stream:
                reader = asyncio.create_task(read(message.text_stream))
                async for frame in message.audio_stream:
                    samples += frame.samples_per_channel
                await reader
            return "".join(words), samples

    async def close(self):
        await self.session.aclose()
        await self.model.aclose()
        assert not self.errors, self.errors


async def a_turn_that_the_server_finds(url):
    talk = Talk(url)
    speaking = asyncio.create_task(talk.say(SPEECH + bytes(24_000 * 2 * 30)))
    async with asyncio.timeout(LONG):
        await talk.started.wait()
        heard = await talk.heard.get()
    words, samples = await talk.generation()
    speaking.cancel()
    assert "young man" in heard and words and samples > 12_000, (heard, words, samples)
    await talk.close()


async def a_reply_that_is_asked_for(url):
    talk = Talk(url)
    await talk.session.update_instructions("Answer in one short sentence.")
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="My brother is a very quiet person.")
    await talk.session.update_chat_ctx(context)
    async with asyncio.timeout(LONG):
        await talk.session.generate_reply()
    words, samples = await talk.generation()
    assert words and samples > 12_000, (words, samples)
    ids = [item.id for item in talk.session.chat_ctx.items]
    assert len(ids) == 2, "the question and its answer are in the conversation"
    await talk.close()


async def an_interruption(url):
    talk = Talk(url)
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="Tell me a long story about the sea.")
    await talk.session.update_chat_ctx(context)
    async with asyncio.timeout(LONG):
        created = await talk.session.generate_reply()
        await talk.generations.get()
        async for message in created.message_stream:
            samples = 0
            async for frame in message.audio_stream:
                if samples == 0:
                    talk.session.interrupt()
                    talk.session.truncate(message_id=message.message_id, modalities=["audio"], audio_end_ms=100)
                samples += frame.samples_per_channel
    assert 0 < samples, "it spoke before it was interrupted"
    # And it answers again.
    context = talk.session.chat_ctx.copy()
    context.add_message(role="user", content="I went for a walk in the park this morning.")
    await talk.session.update_chat_ctx(context)
    async with asyncio.timeout(LONG):
        await talk.session.generate_reply()
    words, samples = await talk.generation()
    assert words and samples > 12_000, (words, samples)
    await talk.close()


CHECKS = [a_turn_that_the_server_finds, a_reply_that_is_asked_for, an_interruption]


async def drive(url):
    for check in CHECKS:
        await check(url)
        print(f"ok  {check.__name__.replace('_', ' ')}", flush=True)


if __name__ == "__main__":
    with served(sys.argv[1], "voice-assistant") as address:
        asyncio.run(drive(address))
