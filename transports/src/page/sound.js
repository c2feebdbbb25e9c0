// Microphone and loudspeaker. Both live in one audio context at the device's own rate; the worklets convert.

function base64(bytes) {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function samples(text) {
  const binary = atob(text);
  const out = new Float32Array(binary.length >> 1);
  for (let i = 0; i < out.length; i++) {
    const value = binary.charCodeAt(2 * i) | (binary.charCodeAt(2 * i + 1) << 8);
    out[i] = (value << 16 >> 16) / 32768;
  }
  return out;
}

export class Sound {
  // `on` has heard(base64, peak), started(item), progress(item, ms, peak), finished(item, ms), lost().
  constructor(on) {
    this.on = on;
    this.stops = new Map();
    this.next = 0;
  }

  // Makes sound possible. To be called in answer to a click or a key, or browsers keep it silent.
  async open() {
    this.opening ??= this.build();
    await this.opening;
    if (this.context.state === 'suspended') await this.context.resume();
  }

  async build() {
    this.context = new AudioContext({ latencyHint: 'interactive' });
    const module = (name) => this.context.audioWorklet.addModule(new URL(name, import.meta.url));
    await Promise.all([module('./capture.js'), module('./playback.js')]);
    this.player = new AudioWorkletNode(this.context, 'playback', { numberOfInputs: 0, outputChannelCount: [1] });
    this.player.port.onmessage = ({ data }) => this.told(data);
    this.player.connect(this.context.destination);
  }

  told(data) {
    const heard = Math.max(0, (data.played ?? 0) - (this.context.outputLatency || 0) * 1000);
    if (data.started) this.on.started(data.started);
    else if (data.finished) this.on.finished(data.finished, data.played);
    else if (data.stopped !== undefined) {
      this.stops.get(data.stopped)?.({ item: data.item, played: heard });
      this.stops.delete(data.stopped);
    } else this.on.progress(data.item, heard, data.peak);
  }

  get listening() {
    return this.stream !== undefined;
  }

  // Opens the microphone; fails as `getUserMedia` does.
  async listen() {
    if (this.stream) return;
    if (!navigator.mediaDevices?.getUserMedia) throw new DOMException('', 'SecureContextError');
    const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
    const stream = await navigator.mediaDevices.getUserMedia({ audio });
    this.stream = stream;
    this.source = this.context.createMediaStreamSource(stream);
    this.capture = new AudioWorkletNode(this.context, 'capture', { numberOfOutputs: 0 });
    this.capture.port.onmessage = ({ data }) => {
      if (this.stream) this.on.heard(base64(new Uint8Array(data.pcm.buffer)), data.peak);
    };
    this.source.connect(this.capture);
    for (const track of stream.getTracks()) {
      track.onended = () => {
        this.deaf();
        this.on.lost();
      };
    }
  }

  mute(muted) {
    for (const track of this.stream?.getTracks() ?? []) track.enabled = !muted;
  }

  // Lets go of the microphone.
  deaf() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.source?.disconnect();
    if (this.capture) this.capture.port.onmessage = null;
    this.stream = this.source = this.capture = undefined;
  }

  play(item, text, rate) {
    const play = samples(text);
    if (this.player && play.length > 0) this.player.port.postMessage({ play, item, rate }, [play.buffer]);
  }

  // Nothing more comes of `item`.
  end(item) {
    this.player?.port.postMessage({ end: item });
  }

  // Falls silent at once. Gives what was playing, and how much of it was heard, in ms.
  async stop() {
    if (!this.player) return { item: undefined, played: 0 };
    const id = this.next++;
    const stopped = new Promise((resolve) => this.stops.set(id, resolve));
    this.player.port.postMessage({ stop: id });
    return stopped;
  }
}
