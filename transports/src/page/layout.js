// Places the nodes of a graph: what feeds above what is fed, few crossings, long edges around the boxes between.

const PASS = 16; // the width that a passing edge takes
const SWEEPS = 16;

// Nodes are {depth, client}, edges {from, to, feedback}, by index. Gives {width, height, nodes: [{x, y}] (centres),
// edges: [{path, x, y}]} with the middle of each edge.
export function layout(nodes, edges, { wide = 116, tall = 46, apart = 18, gap = 50, most = 4 } = {}) {
  const forward = edges.filter((e) => !e.feedback && e.from !== e.to);
  const depth = depths(nodes, forward, most);
  const cells = nodes.map((_, i) => ({ node: i, layer: depth[i], wide, up: [], down: [] }));
  const lines = edges.map((e) => (forward.includes(e) ? trail(cells, e, depth) : undefined));
  const layers = [];
  for (const cell of cells) (layers[cell.layer] ??= []).push(cell);
  for (let i = 0; i < layers.length; i++) layers[i] ??= [];
  order(layers);
  place(layers, apart);
  const left = Math.min(...cells.map((c) => c.x - c.wide / 2));
  const loops = edges.some((e, i) => !lines[i]) ? 34 : 0;
  const width = Math.max(...cells.map((c) => c.x + c.wide / 2)) - left + 2 + loops;
  for (const cell of cells) {
    cell.x += 1 - left;
    cell.y = cell.layer * (tall + gap) + tall / 2 + 1;
  }
  const height = layers.length * (tall + gap) - gap + 2;
  const ends = ports(cells, edges, lines);
  const drawn = edges.map((e, i) =>
    lines[i] ? curve(lines[i], ends[i], tall, gap) : loop(cells[e.from], cells[e.to], width, tall),
  );
  return { width, height, wide, tall, nodes: cells.slice(0, nodes.length).map(({ x, y }) => ({ x, y })), edges: drawn };
}

// Layers: sources right above what they feed, and a crowded layer hands its ends of the graph down.
function depths(nodes, edges, most) {
  const depth = nodes.map((n) => n.depth);
  nodes.forEach((_, i) => {
    if (edges.some((e) => e.to === i)) return;
    const fed = edges.filter((e) => e.from === i).map((e) => depth[e.to]);
    if (fed.length > 0) depth[i] = Math.max(0, Math.min(...fed) - 1);
  });
  const sink = (i) => !edges.some((e) => e.from === i);
  for (let layer = 0; layer <= Math.max(...depth) && layer < 200; layer++) {
    const here = nodes.map((_, i) => i).filter((i) => depth[i] === layer);
    for (const i of here.filter(sink).reverse().slice(0, Math.max(0, here.length - most))) depth[i]++;
  }
  return depth;
}

// The cells of an edge from layer to layer; those between its ends are made here.
function trail(cells, edge, depth) {
  const trail = [cells[edge.from]];
  for (let layer = depth[edge.from] + 1; layer < depth[edge.to]; layer++) {
    const pass = { layer, wide: PASS, up: [], down: [] };
    cells.push(pass);
    trail.push(pass);
  }
  trail.push(cells[edge.to]);
  for (let i = 1; i < trail.length; i++) {
    trail[i - 1].down.push(trail[i]);
    trail[i].up.push(trail[i - 1]);
  }
  return trail;
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

function number(layers) {
  for (const layer of layers) layer.forEach((cell, i) => (cell.at = i - (layer.length - 1) / 2));
}

function crossings(layers) {
  let count = 0;
  for (const layer of layers) {
    const lines = layer.flatMap((a) => a.down.map((b) => [a.at, b.at]));
    for (let i = 0; i < lines.length; i++) {
      for (let j = 0; j < i; j++) if ((lines[i][0] - lines[j][0]) * (lines[i][1] - lines[j][1]) < 0) count++;
    }
  }
  return count;
}

// Sorts each layer by the middle of its neighbours, down and up again, and keeps the best.
function order(layers) {
  number(layers);
  let best = { count: crossings(layers), layers: layers.map((l) => [...l]) };
  for (let sweep = 0; sweep < SWEEPS && best.count > 0; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wish = (cell) => {
        const next = down ? cell.up : cell.down;
        return next.length > 0 ? mean(next.map((n) => n.at)) : cell.at;
      };
      const wishes = new Map(layer.map((cell) => [cell, wish(cell)]));
      layer.sort((a, b) => wishes.get(a) - wishes.get(b));
      number([layer]);
    }
    const count = crossings(layers);
    if (count < best.count) best = { count, layers: layers.map((l) => [...l]) };
  }
  best.layers.forEach((layer, i) => layers[i].splice(0, Infinity, ...layer));
  number(layers);
}

// Gives each cell its x: as near to its neighbours as the others of its layer let it.
function place(layers, apart) {
  for (const layer of layers) {
    let x = 0;
    for (const cell of layer) {
      cell.x = x + cell.wide / 2;
      x += cell.wide + apart;
    }
    for (const cell of layer) cell.x -= (x - apart) / 2;
  }
  for (let sweep = 0; sweep < 12; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wishes = layer.map((cell) => {
        // A passing edge is straight first of all.
        const near = [...(down ? cell.up : cell.down), ...(sweep > 5 ? (down ? cell.down : cell.up) : [])];
        return near.length > 0 ? mean(near.map((n) => n.x)) : cell.x;
      });
      settle(layer, wishes, apart);
    }
  }
}

// The positions nearest to the wishes that keep order and distance: blocks that meet are moved as one.
function settle(layer, wishes, apart) {
  const offsets = [0];
  for (let i = 1; i < layer.length; i++) offsets.push(offsets[i - 1] + (layer[i - 1].wide + layer[i].wide) / 2 + apart);
  const blocks = [];
  layer.forEach((_, i) => {
    let block = { sum: wishes[i] - offsets[i], count: 1 };
    while (blocks.length > 0 && blocks.at(-1).sum / blocks.at(-1).count >= block.sum / block.count) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, count: before.count + block.count };
    }
    blocks.push(block);
  });
  let i = 0;
  for (const { sum, count } of blocks) {
    for (let n = 0; n < count; n++, i++) layer[i].x = sum / count + offsets[i];
  }
}

// Where edges leave and enter: side by side, in the order in which they go.
function ports(cells, edges, lines) {
  const ends = edges.map(() => ({ out: 0, in: 0 }));
  const spread = (mine, next, key) => {
    const sorted = mine.map((i) => [i, next(lines[i]).x]).sort((a, b) => a[1] - b[1]);
    const step = Math.min(22, 84 / Math.max(1, sorted.length));
    sorted.forEach(([i], n) => (ends[i][key] = (n - (sorted.length - 1) / 2) * step));
  };
  cells.forEach((cell, c) => {
    const of = (end) => edges.map((_, i) => i).filter((i) => lines[i] && edges[i][end] === c);
    spread(of('from'), (line) => line[1], 'out');
    spread(of('to'), (line) => line.at(-2), 'in');
  });
  return ends;
}

function curve(trail, ends, tall, gap) {
  const points = [];
  trail.forEach((cell, i) => {
    const first = i === 0;
    const last = i === trail.length - 1;
    if (!first) points.push([cell.x + (last ? ends.in : 0), cell.y - tall / 2]);
    if (!last) points.push([cell.x + (first ? ends.out : 0), cell.y + tall / 2]);
  });
  const [x, y] = points[0];
  let path = `M${x} ${y}`;
  for (let i = 1; i < points.length; i++) {
    const [px, py] = points[i - 1];
    const [nx, ny] = points[i];
    path += i % 2 === 0 ? `L${nx} ${ny}` : `C${px} ${py + gap / 2} ${nx} ${ny - gap / 2} ${nx} ${ny}`;
  }
  // The label stands in the gap above the consumer.
  const [ax, ay] = points.at(-2);
  const [bx, by] = points.at(-1);
  return { path, x: (ax + bx) / 2, y: (ay + by) / 2 };
}

// An edge back up, around the right.
function loop(from, to, width, tall) {
  const right = width - 10;
  const [fy, ty] = [from.y + tall / 2, to.y - tall / 2];
  const path = `M${from.x + 30} ${fy}C${from.x + 30} ${fy + 24} ${right} ${fy + 24} ${right} ${fy}L${right} ${ty}C${right} ${ty - 24} ${to.x + 30} ${ty - 24} ${to.x + 30} ${ty}`;
  return { path, x: right, y: (fy + ty) / 2 };
}
