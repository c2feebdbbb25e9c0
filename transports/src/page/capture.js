// The microphone's worklet: mono, 24 kHz, in pieces of 20 ms.

import { Resampler } from './resample.js';

const RATE = 24000;
const PIECE = RATE / 50;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, RATE);
    this.piece = new Int16Array(PIECE);
    this.filled = 0;
    this.peak = 0;
  }

  process(inputs) {
    const channels = inputs[0];
    const mono = new Float32Array(channels[0]?.length ?? 128);
    for (const channel of channels) {
      for (let i = 0; i < mono.length; i++) mono[i] += channel[i] / channels.length;
    }
    for (const sample of this.resampler.push(mono)) {
      const clipped = Math.max(-1, Math.min(1, sample));
      this.peak = Math.max(this.peak, Math.abs(clipped));
      this.piece[this.filled++] = Math.round(clipped * 32767);
      if (this.filled === PIECE) {
        this.port.postMessage({ pcm: this.piece, peak: this.peak }, [this.piece.buffer]);
        this.piece = new Int16Array(PIECE);
        this.filled = 0;
        this.peak = 0;
      }
    }
    return true;
  }
}

registerProcessor('capture', Capture);
