"""Drives a served voice-assistant with the unmodified openai package. Usage: openai_client.py PATH_OF_omni-flow"""

import asyncio
import base64
import json
import sys

import openai

from served import LONG, PIECE, recording, served

SPEECH = recording()


class Session:
    """One connection, its events kept in order."""

    def __init__(self, connection):
        self.connection = connection
        self.events = []

    async def until(self, *types, also=lambda event: True):
        """The next event of one of these types."""
        async with asyncio.timeout(LONG):
            while True:
                event = await self.connection.recv()
                self.events.append(event)
                if event.type == "error" and "error" not in types:
                    raise AssertionError(f"an error: {event.error}")
                if event.type in types and also(event):
                    return event

    async def say(self, pcm, pace=0.02):
        """Speaks as a microphone does."""
        for at in range(0, len(pcm), PIECE):
            audio = base64.b64encode(pcm[at : at + PIECE]).decode()
            await self.connection.input_audio_buffer.append(audio=audio)
            await asyncio.sleep(pace)

    def audio(self, response_id):
        """Bytes of a response's audio so far."""
        deltas = [e for e in self.events if e.type == "response.output_audio.delta" and e.response_id == response_id]
        return sum(len(base64.b64decode(e.delta)) for e in deltas)


def connect(client):
    return client.realtime.connect(model="voice-assistant")


async def a_turn_that_the_server_finds(client):
    async with connect(client) as connection:
        session = Session(connection)
        created = await session.until("session.created")
        assert created.session.type == "realtime" and created.session.audio.input.format.rate == 24_000, created
        speaking = asyncio.create_task(session.say(SPEECH + bytes(24_000 * 2 * 30)))
        started = await session.until("input_audio_buffer.speech_started")
        heard = await session.until("conversation.item.input_audio_transcription.completed")
        assert heard.item_id == started.item_id and "young man" in heard.transcript, heard
        done = await session.until("response.done")
        speaking.cancel()
        assert done.response.status == "completed", done
        assert session.audio(done.response.id) > 24_000, "half a second of audio at least"
        words = "".join(e.delta for e in session.events if e.type == "response.output_audio_transcript.delta")
        whole = next(e for e in session.events if e.type == "response.output_audio_transcript.done")
        assert words == whole.transcript != "", (words, whole)


async def manual(session):
    await session.until("session.created")
    audio = {"input": {"turn_detection": None}}
    await session.connection.session.update(session={"type": "realtime", "audio": audio})
    updated = await session.until("session.updated")
    assert updated.session.audio.input.turn_detection is None, updated


async def a_turn_that_the_client_commits(client):
    async with connect(client) as connection:
        session = Session(connection)
        await manual(session)
        await session.say(SPEECH, 0)
        await connection.input_audio_buffer.commit()
        await session.until("input_audio_buffer.committed")
        await connection.response.create()
        done = await session.until("response.done")
        assert done.response.status == "completed" and session.audio(done.response.id) > 24_000, done


async def an_interruption(client):
    async with connect(client) as connection:
        session = Session(connection)
        await session.until("session.created")
        speaking = asyncio.create_task(session.say(SPEECH + bytes(24_000 * 2 * 30)))
        await session.until("response.output_audio.delta")
        speaking.cancel()
        again = asyncio.create_task(session.say(SPEECH + bytes(24_000 * 2 * 30)))
        cut = await session.until("response.done")
        assert cut.response.status == "cancelled", cut
        item_id = f"item_{cut.response.id}"
        await connection.conversation.item.retrieve(item_id=item_id)
        kept = (await session.until("conversation.item.retrieved")).item.content[0].transcript
        written = "".join(
            e.delta
            for e in session.events
            if e.type == "response.output_audio_transcript.delta" and e.response_id == cut.response.id
        )
        assert written.startswith(kept) and len(kept) < len(written) / 2, (kept, written)
        at = len(session.events)
        answered = await session.until("response.done")
        again.cancel()
        assert answered.response.status == "completed", answered
        late = [e for e in session.events[at:] if getattr(e, "response_id", None) == cut.response.id]
        assert not late, late


async def a_written_turn(client):
    async with connect(client) as connection:
        session = Session(connection)
        await manual(session)
        for text in ["Hello, who are you?", "And what do you like?"]:
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
            await connection.conversation.item.create(item=item)
            await session.until("conversation.item.added")
            await connection.response.create(response={"output_modalities": ["text"]})
            done = await session.until("response.done")
            assert done.response.status == "completed", done
            said = [e for e in session.events if e.type == "response.output_text.done" and e.response_id == done.response.id]
            assert len(said) == 1 and said[0].text.strip(), session.events
            assert session.audio(done.response.id) == 0


async def the_result_of_a_function(client):
    async with connect(client) as connection:
        session = Session(connection)
        await manual(session)
        tool = {"type": "function", "name": "lamp", "description": "Turns the lamp on", "parameters": {"type": "object"}}
        await connection.session.update(session={"type": "realtime", "tools": [tool]})
        await session.until("session.updated")
        items = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Light, please."}]},
            {"type": "function_call", "call_id": "call_1", "name": "lamp", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "the lamp is on"},
        ]
        for item in items:
            await connection.conversation.item.create(item=item)
            await session.until("conversation.item.added")
        await connection.response.create()
        done = await session.until("response.done")
        assert done.response.status == "completed", done


async def refusals(client):
    async with connect(client) as connection:
        session = Session(connection)
        await manual(session)
        await connection.response.cancel()
        refused = await session.until("error")
        assert refused.error.code == "response_cancel_not_active", refused
        await connection.input_audio_buffer.commit()
        refused = await session.until("error")
        assert refused.error.code == "input_audio_buffer_commit_empty", refused


CHECKS = [
    a_turn_that_the_server_finds,
    a_turn_that_the_client_commits,
    an_interruption,
    a_written_turn,
    the_result_of_a_function,
    refusals,
]


async def drive(url):
    client = openai.AsyncOpenAI(api_key="unused", base_url=f"{url}/v1")
    listed = await client.models.list()
    assert [m.id for m in listed.data] == ["voice-assistant"], listed
    for check in CHECKS:
        await check(client)
        print(f"ok  {check.__name__.replace('_', ' ')}", flush=True)


if __name__ == "__main__":
    with served(sys.argv[1], "voice-assistant") as address:
        asyncio.run(drive(address))
