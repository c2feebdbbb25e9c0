// The loudspeaker's worklet: plays answers one after another, and tells how much of each has been heard.
//
// In: {play, item, rate} (samples), {end: item}, {stop: id}. Out: {started: item}, {item, played, peak} every 40 ms,
// {finished: item, played}, {stopped: id, item, played}. Played is in milliseconds.

import { Resampler } from './resample.js';

// What must be there before an answer begins, or goes on after a gap.
const AHEAD_S = 0.06;
const TELL_S = 0.04;
const FADE_S = 0.006;

class Playback extends AudioWorkletProcessor {
  constructor() {
    super();
    this.answers = [];
    this.fade = new Float32Array(0);
    this.faded = 0;
    this.told = 0;
    this.peak = 0;
    this.port.onmessage = ({ data }) => {
      if (data.play) this.add(data);
      else if (data.end) this.end(data.end);
      else if (data.stop !== undefined) this.stop(data.stop);
    };
  }

  of(item) {
    return this.answers.find((a) => a.item === item);
  }

  add({ play, item, rate }) {
    let answer = this.of(item);
    if (!answer) {
      answer = { item, pieces: [], offset: 0, queued: 0, played: 0, waiting: true, ended: false };
      this.answers.push(answer);
    }
    if (answer.rate !== rate) {
      answer.rate = rate;
      answer.resampler = new Resampler(rate, sampleRate);
    }
    this.queue(answer, answer.resampler.push(play));
  }

  queue(answer, samples) {
    if (samples.length === 0) return;
    answer.pieces.push(samples);
    answer.queued += samples.length;
  }

  end(item) {
    const answer = this.of(item);
    if (!answer || answer.ended) return;
    this.queue(answer, answer.resampler.flush());
    answer.ended = true;
  }

  stop(id) {
    const answer = this.answers[0];
    if (answer && answer.played > 0 && answer.pieces.length > 0) {
      const rest = answer.pieces[0].subarray(answer.offset, answer.offset + Math.round(FADE_S * sampleRate));
      this.fade = rest.map((s, i) => s * (1 - i / rest.length));
      this.faded = 0;
    }
    this.answers = [];
    this.port.postMessage({ stopped: id, item: answer?.item, played: answer ? this.ms(answer) : 0 });
  }

  ms(answer) {
    return (answer.played / sampleRate) * 1000;
  }

  process(_inputs, outputs) {
    const out = outputs[0][0];
    let at = 0;
    while (this.faded < this.fade.length && at < out.length) out[at++] = this.fade[this.faded++];
    while (at < out.length && this.answers.length > 0) {
      const answer = this.answers[0];
      if (answer.waiting) {
        if (!answer.ended && answer.queued < AHEAD_S * sampleRate) break;
        answer.waiting = false;
        if (answer.played === 0) this.port.postMessage({ started: answer.item });
      }
      const piece = answer.pieces[0];
      if (!piece) {
        if (!answer.ended) {
          answer.waiting = true;
          break;
        }
        this.port.postMessage({ finished: answer.item, played: this.ms(answer) });
        this.answers.shift();
        continue;
      }
      const count = Math.min(out.length - at, piece.length - answer.offset);
      for (let i = 0; i < count; i++) {
        const sample = piece[answer.offset + i];
        out[at + i] = sample;
        this.peak = Math.max(this.peak, Math.abs(sample));
      }
      at += count;
      answer.offset += count;
      answer.played += count;
      answer.queued -= count;
      if (answer.offset === piece.length) {
        answer.pieces.shift();
        answer.offset = 0;
      }
    }
    this.told += out.length;
    if (this.told >= TELL_S * sampleRate) {
      const answer = this.answers[0];
      if (answer && answer.played > 0) this.port.postMessage({ item: answer.item, played: this.ms(answer), peak: this.peak });
      this.told = 0;
      this.peak = 0;
    }
    return true;
  }
}

registerProcessor('playback', Playback);
