"""What the scripts of this folder share: a served graph, and speech."""

import contextlib
import json
import pathlib
import signal
import subprocess
import wave

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Nothing here is timed: a wait this long means that it will not happen.
LONG = 120


@contextlib.contextmanager
def served(program, graph, *more):
    """The address of a served graph; afterwards the server must end in order."""
    command = [program, "run", f"graphs/{graph}.yaml", "--listen", "127.0.0.1:0", "--json", *more]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = json.loads(server.stdout.readline() or "{}")
            assert line.get("event") == "serving", line
            yield line["url"]
            server.send_signal(signal.SIGINT)
            assert server.wait(LONG) == 0, "it ended in order"
        finally:
            server.kill()


def recording():
    """question.wav, as 16-bit PCM at 24 kHz."""
    with wave.open(str(ROOT / "question.wav")) as file:
        rate, data = file.getframerate(), file.readframes(file.getnframes())
    samples = memoryview(data).cast("h")
    count = len(samples) * 24_000 // rate
    pcm = bytearray()
    for i in range(count):
        x = i * rate / 24_000
        k = int(x)
        a, b = samples[k], samples[min(k + 1, len(samples) - 1)]
        pcm += int(a + (b - a) * (x - k)).to_bytes(2, "little", signed=True)
    return bytes(pcm)


# 20 ms of PCM at 24 kHz.
PIECE = 24_000 // 50 * 2
