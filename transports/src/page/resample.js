// Converts mono samples from one rate to another, piece by piece, with a windowed sinc.

const CROSSINGS = 16;
const PHASES = 512;

export class Resampler {
  constructor(from, to) {
    this.step = from / to;
    // Below the lower of both limits, with room for the slope.
    const cut = Math.min(1, to / from) * 0.94;
    this.half = Math.ceil(CROSSINGS / cut);
    this.table = new Float32Array(this.half * PHASES + 2);
    for (let i = 0; i < this.table.length; i++) {
      const x = i / PHASES;
      const angle = Math.PI * x * cut;
      const sinc = x === 0 ? 1 : Math.sin(angle) / angle;
      const window = x < this.half ? Math.cos((Math.PI * x) / (2 * this.half)) ** 2 : 0;
      this.table[i] = cut * sinc * window;
    }
    this.reset();
  }

  // Forgets what came before.
  reset() {
    // As if silence had come before, so that the first sample counts in full.
    this.held = new Float32Array(this.half);
    this.at = this.half;
  }

  // What these samples make audible; the last few wait for those that come after them.
  push(samples) {
    if (this.step === 1) return samples;
    const all = new Float32Array(this.held.length + samples.length);
    all.set(this.held);
    all.set(samples, this.held.length);
    const count = Math.max(0, Math.ceil((all.length - this.half - this.at) / this.step));
    const out = new Float32Array(count);
    let at = this.at;
    for (let n = 0; n < count; n++, at += this.step) {
      const first = Math.max(0, Math.ceil(at - this.half));
      const last = Math.min(all.length - 1, Math.floor(at + this.half));
      let sum = 0;
      for (let i = first; i <= last; i++) sum += all[i] * this.table[Math.round(Math.abs(at - i) * PHASES)];
      out[n] = sum;
    }
    const keep = Math.max(0, Math.min(all.length, Math.floor(at) - this.half));
    this.held = all.slice(keep);
    this.at = at - keep;
    return out;
  }

  // What is still held back.
  flush() {
    if (this.step === 1) return new Float32Array(0);
    const out = this.push(new Float32Array(this.half + 1));
    this.reset();
    return out;
  }
}
