// A strip of bars that runs from right to left: how loud it was, 40 ms each.

const BAR = 3;
const GAP = 2;
const STEP_MS = 40;

export class Wave {
  constructor(canvas) {
    this.canvas = canvas;
    this.levels = [];
    this.peak = 0;
    this.quiet = 0;
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    this.draw();
  }

  // The newest peak, 0 to 1. The strip runs until it has been quiet for as long as it is wide.
  push(peak) {
    this.peak = Math.max(this.peak, peak);
    this.quiet = 0;
    this.timer ??= setInterval(() => this.tick(), STEP_MS);
  }

  tick() {
    this.levels.push(this.peak);
    const room = Math.ceil(this.canvas.clientWidth / (BAR + GAP));
    while (this.levels.length > room) this.levels.shift();
    this.peak = 0;
    if (++this.quiet > room + 5) {
      clearInterval(this.timer);
      this.timer = undefined;
    }
    this.draw();
  }

  draw() {
    const { canvas } = this;
    const scale = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(canvas);
    const quiet = style.getPropertyValue('--line');
    const count = Math.ceil(width / (BAR + GAP));
    for (let i = 0; i < count; i++) {
      const level = this.levels[this.levels.length - 1 - i] ?? 0;
      // Ears hear ratios: a whisper is to be seen too.
      const loud = Math.max(0, Math.min(1, 1 + Math.log10(Math.max(level, 1e-4)) / 2));
      const tall = Math.max(2, loud * height);
      pen.fillStyle = level > 0.004 ? style.color : quiet;
      pen.beginPath();
      pen.roundRect(width - (i + 1) * (BAR + GAP) + GAP, (height - tall) / 2, BAR, tall, BAR / 2);
      pen.fill();
    }
  }
}
