"""Drives served graphs over HTTP with the unmodified openai package. Usage: openai_http.py PATH_OF_omni-flow"""

import base64
import json
import sys
import time
import urllib.request

import openai

from served import LONG, served

TEXT = "Good morning. It is half past seven."


def client_of(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=LONG)


def metric(url, name, label=""):
    """The sum of a metric, of those of its samples that have `label`."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=LONG) as page:
        lines = page.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name + "{") and label in line)


def refused(kind, call):
    """`call` raises an error of this kind; gives what it says."""
    try:
        call()
    except kind as error:
        return error.body["message"]
    raise AssertionError(f"no {kind.__name__}")


def words(text):
    return "".join(c for c in text.lower() if c.isalpha() or c == " ").split()


def speech(program):
    """Speaks in each format; gives the clip as WAV and as MP3."""
    with served(program, "speak") as url:
        client = client_of(url)
        clips = {}
        for form, magic in [("wav", b"RIFF"), ("mp3", b"\xff"), ("flac", b"fLaC"), ("pcm", b"")]:
            answer = client.audio.speech.create(model="speak", voice="alloy", input=TEXT, response_format=form)
            clips[form] = answer.read()
            assert clips[form].startswith(magic) and len(clips[form]) > 5000, (form, len(clips[form]))
        opus = {"sample_rate": 24_000}
        answer = client.audio.speech.create(model="speak", voice="alloy", input=TEXT, response_format="opus", extra_body=opus)
        assert answer.read().startswith(b"OggS")
        raw = dict(model="speak", voice="alloy", input=TEXT, response_format="pcm", extra_body={"stream_format": "audio"})
        with client.audio.speech.with_streaming_response.create(**raw) as stream:
            pieces = list(stream.iter_bytes())
        assert b"".join(pieces) == clips["pcm"] and len(pieces) > 1, "the stream is the clip, in pieces"
        sse = dict(raw, stream_format="sse", extra_body={})
        with client.audio.speech.with_streaming_response.create(**sse) as stream:
            events = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: ")]
        joined = b"".join(base64.b64decode(e["audio"]) for e in events[:-1])
        assert joined == clips["pcm"] and events[-1]["type"] == "speech.audio.done", events[-1]
        fast = client.audio.speech.create(model="speak", voice="alloy", input=TEXT, response_format="pcm", speed=2.0)
        assert abs(2 * len(fast.read()) / len(clips["pcm"]) - 1) < 0.1
        says = refused(openai.BadRequestError, lambda: client.audio.speech.create(model="speak", voice="alloy", input=" "))
        assert says == "Input text cannot be empty", says
        refused(openai.NotFoundError, lambda: client.audio.speech.create(model="tts-1", voice="alloy", input="x"))
        # One that is left in the middle ends at once, and is counted with its reason.
        long = dict(raw, input=" ".join([TEXT] * 200))
        with client.audio.speech.with_streaming_response.create(**long) as stream:
            next(stream.iter_bytes())
        begun = time.monotonic()
        while metric(url, "omni_flow_requests_running") > 0:
            assert time.monotonic() - begun < LONG, "the request of a client that has gone goes on"
            time.sleep(0.1)
        assert metric(url, "omni_flow_requests_failed_total", 'reason="client_disconnect"') == 1
        return clips


def transcripts(program, clips):
    with served(program, "transcribe") as url:
        client = client_of(url)
        for form in ["wav", "mp3", "flac"]:
            file = (f"clip.{form}", clips[form])
            heard = client.audio.transcriptions.create(model="transcribe", file=file)
            assert words(heard.text) == words(TEXT), (form, heard.text)
        file = ("clip.wav", clips["wav"])
        verbose = client.audio.transcriptions.create(model="transcribe", file=file, response_format="verbose_json")
        assert verbose.segments[0].end <= verbose.duration + 0.1 and verbose.segments[0].start >= 0, verbose
        stream = client.audio.transcriptions.create(model="transcribe", file=file, stream=True)
        events = list(stream)
        assert events[-1].type == "transcript.text.done" and words(events[-1].text) == words(TEXT), events
        assert "".join(e.delta for e in events[:-1]) == events[-1].text
        text = client.audio.transcriptions.create(model="transcribe", file=file, response_format="text")
        assert words(text) == words(TEXT), text
        bad = lambda: client.audio.transcriptions.create(model="transcribe", file=("x.wav", b"no sound"))
        assert "file" in refused(openai.BadRequestError, bad)


def chat(program):
    with served(program, "chat") as url:
        client = client_of(url)
        ask = dict(model="chat", messages=[{"role": "user", "content": "Why is the sky blue?"}], max_tokens=24, temperature=0)
        text = client.chat.completions.create(**ask)
        said = text.choices[0].message.content
        assert said and text.usage.completion_tokens <= 24 and text.choices[0].finish_reason in ("stop", "length"), text
        stream = client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == said, chunks
        assert chunks[-1].usage.total_tokens == text.usage.total_tokens and chunks[-1].choices == []
        loud = dict(ask, modalities=["text", "audio"], audio={"voice": "alloy", "format": "wav"})
        both = client.chat.completions.create(**loud).choices[0].message.audio
        assert both.transcript == said and base64.b64decode(both.data)[:4] == b"RIFF", both.transcript
        loud["audio"]["format"] = "pcm16"
        parts = [c.choices[0].delta for c in client.chat.completions.create(**loud, stream=True) if c.choices]
        audio = [d.audio for d in parts if getattr(d, "audio", None)]
        assert "".join(getattr(a, "transcript", None) or "" for a in audio) == said
        assert sum(len(base64.b64decode(getattr(a, "data", None) or "")) for a in audio) > 20_000
        image = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
        seen = dict(ask, messages=[{"role": "user", "content": image}])
        assert "image_url" in refused(openai.BadRequestError, lambda: client.chat.completions.create(**seen))
        assert [m.id for m in client.models.list()] == ["chat"]


def main():
    program = sys.argv[1]
    clips = speech(program)
    print("ok: speech, whole and streamed, in wav, mp3, flac, pcm and opus")
    transcripts(program, clips)
    print("ok: transcripts of what was spoken, whole and streamed")
    chat(program)
    print("ok: chat as text, as speech, and both, whole and streamed")


if __name__ == "__main__":
    main()
