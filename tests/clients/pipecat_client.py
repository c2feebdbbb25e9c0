"""Drives a served voice-assistant with the unmodified Realtime service of Pipecat, in a pipeline of its own.

Usage: pipecat_client.py PATH_OF_omni-flow
"""

import asyncio
import sys

from pipecat.frames import frames
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService

from served import LONG, PIECE, recording, served

SPEECH = recording()


class Ear(FrameProcessor):
    """Notes what passes."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.news = asyncio.Condition()

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        async with self.news:
            self.seen.append(frame)
            self.news.notify_all()
        await self.push_frame(frame, direction)

    def of(self, kind, since=0):
        return [f for f in self.seen[since:] if isinstance(f, kind)]

    async def until(self, there):
        async with asyncio.timeout(LONG):
            async with self.news:
                await self.news.wait_for(there)


async def talk(url):
    service = OpenAIRealtimeLLMService(api_key="none", base_url=url.replace("http", "ws", 1) + "/v1/realtime")
    before, after = Ear(), Ear()
    context = LLMContextAggregatorPair(LLMContext([]))
    pipeline = Pipeline([context.user(), before, service, after, context.assistant()])
    params = PipelineParams(audio_in_sample_rate=24_000, audio_out_sample_rate=24_000)
    task = PipelineTask(pipeline, params=params)
    runner = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))
    speaking = True

    async def say():
        # As a microphone does: speech once, then silence.
        pcm = SPEECH + bytes(24_000 * 2 * 60)
        for at in range(0, len(pcm), PIECE):
            if not speaking:
                return
            await task.queue_frame(frames.InputAudioRawFrame(pcm[at : at + PIECE], 24_000, 1))
            await asyncio.sleep(0.02)

    voice = asyncio.create_task(say())
    heard = lambda: before.of(frames.TranscriptionFrame) + after.of(frames.TranscriptionFrame)
    await after.until(lambda: after.of(frames.TTSAudioRawFrame))
    await after.until(lambda: after.of(frames.TTSStoppedFrame))
    audio = sum(len(f.audio) for f in after.of(frames.TTSAudioRawFrame))
    words = "".join(f.text for f in after.of(frames.TTSTextFrame))
    assert audio > 24_000 and words, (audio, words)
    assert any("young man" in f.text for f in heard()), heard()
    print("ok  a turn that the server finds", flush=True)

    # Speech again: the service tells the pipeline that it is interrupted, and a new answer comes.
    since, came = len(after.seen), len(before.seen)
    speaking = False
    await voice
    speaking = True
    voice = asyncio.create_task(say())
    await after.until(lambda: after.of(frames.InterruptionFrame, since) or before.of(frames.InterruptionFrame, came))
    await after.until(lambda: after.of(frames.TTSAudioRawFrame, since) and after.of(frames.TTSStoppedFrame, since))
    print("ok  an interruption, and the answer to it", flush=True)
    # None of this may have been an error.
    errors = [f.error for ear in (before, after) for f in ear.of(frames.ErrorFrame)]
    assert not errors, errors
    speaking = False
    await voice
    await task.cancel()
    async with asyncio.timeout(LONG):
        await runner


if __name__ == "__main__":
    with served(sys.argv[1], "voice-assistant") as address:
        asyncio.run(talk(address))
