// How long each part of a turn took: from the end of what was said to the first sound of the answer.

const STEPS = [
  ['heard', 'heard'],
  ['word', 'first word'],
  ['audio', 'first audio'],
];

export class Timing {
  // `kind` is speech, push or text; `end` is when the user had finished.
  constructor(kind, end) {
    this.kind = kind;
    this.marks = { end };
  }

  // Notes the first of each. True if it is news.
  mark(name, at = performance.now()) {
    if (this.marks[name] !== undefined) return false;
    this.marks[name] = Math.max(at, this.marks.end);
    return true;
  }

  // The parts so far, in the order in which they came: [{name, label, ms, total}].
  parts() {
    const { end } = this.marks;
    const found = STEPS.filter(([name]) => this.marks[name] !== undefined);
    found.sort(([a], [b]) => this.marks[a] - this.marks[b]);
    let before = end;
    return found.map(([name, label]) => {
      const at = this.marks[name];
      const part = { name, label, ms: at - before, total: at - end };
      before = at;
      return part;
    });
  }
}

const NS = 'http://www.w3.org/2000/svg';
const WIDE = 1000;

// Draws it into `strip`: a bar in proportion, and the numbers below.
export function drawTiming(strip, timing) {
  const parts = timing.parts();
  strip.replaceChildren();
  if (parts.length === 0) return;
  const total = Math.max(1, parts.at(-1).total);
  const from = timing.kind === 'text' ? 'sent' : 'speech end';
  const bar = document.createElementNS(NS, 'svg');
  bar.setAttribute('viewBox', `0 0 ${WIDE} 6`);
  bar.setAttribute('preserveAspectRatio', 'none');
  bar.setAttribute('aria-hidden', 'true');
  let at = 0;
  for (const { name, ms } of parts) {
    const rect = document.createElementNS(NS, 'rect');
    const wide = (ms / total) * WIDE;
    for (const [key, value] of Object.entries({ x: at, y: 0, width: wide, height: 6, class: name })) rect.setAttribute(key, value);
    bar.append(rect);
    at += wide;
  }
  const words = document.createElement('p');
  words.append(`${from} `);
  for (const { name, label, total: ms } of parts) {
    const part = document.createElement('span');
    part.className = name;
    part.textContent = `${label} ${Math.round(ms)} ms`;
    words.append('→ ', part, ' ');
  }
  strip.append(bar, words);
}
