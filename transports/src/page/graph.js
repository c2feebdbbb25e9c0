// The graph at work: nodes and how busy they are, edges with how full they are and what runs over them, fences.

import { layout } from './layout.js';

const NS = 'http://www.w3.org/2000/svg';
const FLASH_MS = 900;
const LANES = 8;
// Boxes on a phone are narrower, so that letters need not be smaller.
const NARROW = 480;
const SIZES = { true: { wide: 94, apart: 10, gap: 42 }, false: {} };

function make(name, attributes = {}, ...children) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const lane = (index) => `lane-${index % LANES}`;

function shorten(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function rate(perSecond) {
  if (perSecond < 0.05) return '';
  return perSecond < 10 ? `${perSecond.toFixed(1)}/s` : `${Math.round(perSecond)}/s`;
}

function seconds(s) {
  return s >= 1 ? `${s.toFixed(1)} s` : `${Math.round(s * 1000)} ms`;
}

export class LiveGraph {
  constructor({ box, legend, rows, details, sessions }) {
    Object.assign(this, { box, legend, rows, details, sessions });
    const resized = () => this.about && this.narrow !== this.isNarrow() && this.shape(this.about);
    new ResizeObserver(resized).observe(box);
  }

  isNarrow() {
    return this.box.clientWidth < NARROW;
  }

  // Draws a graph anew.
  shape(shape) {
    this.about = shape;
    this.before = undefined;
    this.rates = shape.edges.map(() => 0);
    this.busy = shape.nodes.map(() => 0);
    this.narrow = this.isNarrow();
    const at = layout(shape.nodes, shape.edges, SIZES[this.narrow]);
    const svg = make('svg', { viewBox: `0 0 ${at.width} ${at.height}`, role: 'img' });
    svg.style.maxWidth = `${Math.round(at.width * 1.15)}px`;
    svg.append(make('title', {}, this.summary(shape)));
    this.edges = shape.edges.map((edge, i) => this.edge(edge, at.edges[i]));
    this.nodes = shape.nodes.map((node, i) => this.node(node, at.nodes[i], at));
    svg.append(...this.edges.map((e) => e.group), ...this.nodes.map((n) => n.group), ...this.edges.map((e) => e.label));
    this.box.replaceChildren(svg);
    this.legend.replaceChildren(
      ...shape.lanes.map((name, i) => {
        const item = document.createElement('li');
        item.className = lane(i);
        const fences = document.createElement('b');
        item.append(name, ' ', fences);
        return item;
      }),
    );
    this.table(shape);
  }

  summary({ graph, nodes, edges }) {
    return `The graph ${graph}: ${nodes.length} nodes, ${edges.length} edges. The figures are in the table below.`;
  }

  edge(edge, { path, x, y }) {
    const group = make('g', { class: `edge ${lane(edge.lane)}${edge.feedback ? ' feedback' : ''}` });
    const line = (name) => make('path', { d: path, class: name, pathLength: 1 });
    const flow = make('path', { d: path, class: 'flow' });
    const parts = { track: line('track'), fill: line('fill'), flow };
    const title = make('title', {}, `${edge.name}\n${edge.kind}`);
    group.append(title, parts.track, parts.fill, parts.flow);
    const label = make('text', { class: 'rate', x, y: y + 3.5 });
    return { group, label, ...parts };
  }

  node(node, { x, y }, { wide, tall }) {
    const ends = { in: ' end', out: ' end' }[node.client] ?? '';
    const group = make('g', { class: `node ${lane(node.lane)}${ends}`, transform: `translate(${x - wide / 2} ${y - tall / 2})` });
    const fences = node.fences === null ? '' : `\nfences ${this.about.lanes[node.fences]}`;
    group.append(make('title', {}, `${node.name}: ${node.use}, ${node.place}${fences}`));
    group.append(make('rect', { class: 'box', width: wide, height: tall, rx: node.client ? tall / 2 : 10 }));
    group.append(make('rect', { class: 'strike', width: wide, height: tall, rx: node.client ? tall / 2 : 10 }));
    group.append(make('text', { class: 'name', x: wide / 2, y: 19 }, shorten(node.name, Math.floor(wide / 7.7))));
    group.append(make('text', { class: 'use', x: wide / 2, y: 32 }, shorten(node.use, Math.floor(wide / 6))));
    const room = wide - 28;
    const busy = make('rect', { class: 'busy', x: 14, y: tall - 8, width: 0, height: 3, rx: 1.5 });
    if (!node.client) group.append(make('rect', { class: 'idle', x: 14, y: tall - 8, width: room, height: 3, rx: 1.5 }), busy);
    if (node.fences !== null) {
      const bolt = make('path', { class: `bolt ${lane(node.fences)}`, d: `M${wide - 13} 6l-5 8h4l-1 6 6-9h-4l1-5z` });
      group.append(bolt);
    }
    return { group, busy, room };
  }

  table(shape) {
    this.cells = shape.edges.map((edge) => {
      const row = document.createElement('tr');
      const name = document.createElement('th');
      name.scope = 'row';
      name.textContent = edge.name.replace('->', ' → ');
      const cells = Array.from({ length: 5 }, () => document.createElement('td'));
      row.append(name, ...cells);
      return { row, cells };
    });
    this.rows.replaceChildren(...this.cells.map((c) => c.row));
  }

  // The newest figures.
  stats(now) {
    if (!this.about) return;
    const before = this.before ?? now;
    const passed = Math.max(0, now.at_s - before.at_s);
    this.before = now;
    const { open, closing } = now.sessions;
    const limit = this.about.max_sessions;
    this.sessions.textContent = `${open} of ${limit} ${limit === 1 ? 'session' : 'sessions'} open${closing ? `, ${closing} closing` : ''}`;
    // Over half a second, so that numbers can be read.
    const share = passed > 0 ? Math.min(1, passed / 0.6) : 0;
    const smooth = (old, next) => (share > 0 ? old + (next - old) * share : old);
    now.edges.forEach((edge, i) => {
      this.rates[i] = smooth(this.rates[i], passed > 0 ? (edge.chunks - before.edges[i].chunks) / passed : 0);
      this.drawEdge(this.edges[i], edge, this.rates[i]);
    });
    now.nodes.forEach((node, i) => {
      const share = passed > 0 ? (node.busy_s - before.nodes[i].busy_s) / passed : 0;
      this.busy[i] = smooth(this.busy[i], Math.max(share, node.working > 0 ? 0.5 : 0));
      this.nodes[i].busy.setAttribute('width', (Math.min(1, this.busy[i]) * this.nodes[i].room).toFixed(1));
      this.nodes[i].group.classList.toggle('works', this.busy[i] > 0.02);
      if (node.faults > before.nodes[i].faults) this.flash(this.nodes[i].group, 'fault');
    });
    now.fences.forEach((count, l) => {
      const shown = this.legend.children[l]?.lastChild;
      if (shown && l > 0) shown.textContent = count === 1 ? '1 fence' : `${count} fences`;
      if (count > before.fences[l]) this.fence(l);
    });
    if (this.details.open) this.fillTable(now);
  }

  drawEdge(drawn, edge, perSecond) {
    const fill = edge.fill.toFixed(3);
    if (drawn.filled !== fill) {
      drawn.filled = fill;
      // What waits, waits before its consumer.
      drawn.fill.setAttribute('stroke-dasharray', `${fill} 2`);
      drawn.fill.setAttribute('stroke-dashoffset', -(1 - edge.fill));
      drawn.fill.classList.toggle('none', edge.fill < 0.01);
    }
    const pace = perSecond < 0.2 ? '' : perSecond < 8 ? 'slow' : perSecond < 30 ? 'brisk' : 'fast';
    if (drawn.pace !== pace) {
      drawn.pace = pace;
      drawn.flow.setAttribute('class', `flow ${pace}`);
    }
    drawn.group.classList.toggle('blocked', edge.blocked > 0 && edge.fill > 0.95);
    const text = pace ? rate(perSecond) : '';
    if (drawn.label.textContent !== text) drawn.label.textContent = text;
  }

  fence(l) {
    this.about.edges.forEach((edge, i) => edge.lane === l && this.flash(this.edges[i].group, 'fenced'));
    this.about.nodes.forEach((node, i) => {
      if (node.lane === l) this.flash(this.nodes[i].group, 'fenced');
      if (node.fences === l) this.flash(this.nodes[i].group, 'fencing');
    });
    const item = this.legend.children[l];
    if (item) this.flash(item, 'fenced');
  }

  flash(element, name) {
    element.classList.remove(name);
    // So that a flash that still runs begins again.
    void element.getBoundingClientRect();
    element.classList.add(name);
    clearTimeout(element[name]);
    element[name] = setTimeout(() => element.classList.remove(name), FLASH_MS);
  }

  fillTable(now) {
    now.edges.forEach((edge, i) => {
      const { stale, policy, closed, restart } = edge.dropped;
      const dropped = Object.entries({ stale, policy, closed, restart }).filter(([, n]) => n > 0);
      const queued = edge.media_s ? `${edge.depth} (${seconds(edge.media_s)})` : `${edge.depth}`;
      const texts = [
        `${Math.round(edge.fill * 100)} %`,
        queued,
        rate(this.rates[i]) || '0/s',
        edge.chunks.toLocaleString(),
        dropped.map(([why, n]) => `${n} ${why}`).join(', ') || '0',
      ];
      texts.forEach((text, n) => {
        const cell = this.cells[i].cells[n];
        if (cell.textContent !== text) cell.textContent = text;
      });
    });
  }
}
