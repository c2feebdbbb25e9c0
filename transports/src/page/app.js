// Joins the document, the conversation and the graph.

import { Conversation } from './conversation.js';
import { LiveGraph } from './graph.js';
import { Refused, sendable } from './realtime.js';
import { Sound } from './sound.js';
import { watch } from './stats.js';
import * as texts from './texts.js';
import { Transcript } from './transcript.js';
import { Wave } from './wave.js';

const $ = (id) => document.getElementById(id);
const base = new URL('.', document.baseURI);
const KEY = 'omni-flow.key';

let key = sessionStorage.getItem(KEY) ?? '';
let again; // what to do once there is a key
let talks = true; // the graph has a conversation
let muted = false;
let connection = 'closed';

const waves = { you: new Wave($('wave-you')), partner: new Wave($('wave-partner')) };
const view = new Transcript({ list: $('transcript'), scroller: $('words'), empty: $('empty'), announcer: $('announcer') });

const sound = new Sound({
  heard(audio, peak) {
    talk.heard(audio);
    waves.you.push(talk.mode === 'push' && talk.pushed === undefined ? 0 : peak);
  },
  started: (item) => talk.started(item),
  progress(item, played, peak) {
    talk.progress(item, played);
    waves.partner.push(peak);
  },
  finished: (item) => talk.finished(item),
  lost() {
    notice(texts.noMicrophone);
    show();
  },
});

const talk = new Conversation({
  sound,
  view,
  base,
  on: {
    state(name) {
      // `open` only says that something changed.
      if (name !== connection) {
        connection = name;
        if (name === 'lost') notice(texts.unreachable);
        else if (name === 'open' && $('notice-text').textContent === texts.unreachable) notice('');
        if (name === 'closed') sound.deaf();
      }
      show();
    },
    notice,
  },
});

function notice(text) {
  $('notice-text').textContent = text;
  $('notice').hidden = !text;
}

// ---- the state, in words and buttons

function words() {
  if (connection === 'connecting') return 'Connecting …';
  if (connection === 'lost') return 'Reconnecting …';
  if (connection === 'closed') return 'Not connected';
  if (talk.playing) return 'Speaking';
  if (talk.speaking || talk.pushed !== undefined) return 'Listening to you';
  if (talk.response) return 'Thinking';
  return sound.listening && talk.mode === 'free' ? 'Listening' : 'Ready';
}

function show() {
  const open = connection === 'open' || connection === 'lost';
  const push = talk.mode === 'push';
  const listening = open && sound.listening;
  $('state').textContent = words();
  $('state').dataset.state = connection;
  document.body.classList.toggle('speaking', Boolean(talk.playing));
  document.body.classList.toggle('listening', Boolean(listening && (!push || talk.pushed !== undefined)));
  swap($('hold'), Boolean(listening && push));
  $('hold').classList.toggle('held', talk.pushed !== undefined);
  swap($('mute'), Boolean(listening && !push));
  $('mute').setAttribute('aria-pressed', String(muted));
  $('mute').textContent = muted ? 'Unmute' : 'Mute';
  swap($('stop'), talk.busy);
  swap($('end'), open);
  swap($('start'), talks && !listening);
  // Not disabled: then it would lose the focus.
  $('start').setAttribute('aria-disabled', String(connection === 'connecting'));
  $('hint-free').hidden = push;
  $('hint-push').hidden = !push;
  const takesText = !open || talk.capabilities.supports_text_only_turn !== false;
  $('text').disabled = $('send').disabled = !talks || !takesText || connection === 'lost' || connection === 'connecting';
  $('text').placeholder = takesText ? 'Write a message' : 'This graph takes speech only';
}

// Whoever uses a keyboard does not lose their place when a button goes.
function swap(button, visible) {
  if (button.hidden === !visible) return;
  const focused = document.activeElement === button;
  button.hidden = !visible;
  if (focused && !visible) {
    const next = ['hold', 'mute', 'start', 'end'].map($).find((b) => !b.hidden && b !== button);
    (next ?? $('text')).focus();
  }
}

// ---- opening

async function open({ microphone }) {
  notice('');
  try {
    // Both at once, in answer to the click that asked for them.
    // What goes wrong with the sound is looked at after the connection, and has a taker until then.
    const ready = sound.open().then(() => (microphone ? sound.listen() : undefined));
    const wrong = ready.then(() => undefined, (e) => (microphone ? Object.assign(new Error(), { microphone: e }) : e));
    await talk.start({ model: $('model').value, key, voice: chosen($('voice')) });
    const e = await wrong;
    if (e) throw e;
    muted = false;
    return true;
  } catch (e) {
    failed(e, () => open({ microphone }));
    return false;
  } finally {
    show();
  }
}

const chosen = (select) => (select.closest('label').hidden ? undefined : select.value || undefined);

function failed(e, retry) {
  if (e.microphone) return notice(texts.microphone(e.microphone));
  if (!(e instanceof Refused)) {
    console.error(e);
    return notice(`${e.message || e}`);
  }
  sound.deaf();
  if (e.status === 401) return needKey(retry);
  notice(e.code ? texts.error(e) : texts.refused(e.status));
}

function needKey(retry) {
  again = retry ?? again;
  const shown = !$('key-form').hidden;
  $('key-form').hidden = false;
  if (key) notice('The server does not know this key.');
  if (!shown && retry) $('key').focus();
}

$('key-form').onsubmit = (e) => {
  e.preventDefault();
  const given = $('key').value.trim();
  if (!sendable(given)) return notice(texts.badKey);
  key = given;
  sessionStorage.setItem(KEY, key);
  $('key').value = '';
  $('key-form').hidden = true;
  notice('');
  choices();
  stats.restart();
  again?.();
  again = undefined;
};

// ---- what there is to choose from

async function ask(path) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const response = await fetch(new URL(path, base), { headers, cache: 'no-store' });
  if (!response.ok) throw new Refused({ status: response.status });
  return response.json();
}

function offer(id, names, first) {
  const select = $(id);
  const before = select.value;
  select.replaceChildren(...names.map((name) => new Option(name, name)));
  if (first) select.prepend(new Option(first, ''));
  select.value = names.includes(before) ? before : first ? '' : names[0];
  select.closest('label').hidden = names.length < 2;
}

async function choices() {
  try {
    const { data } = await ask('v1/models');
    offer('model', data.map((m) => m.id));
  } catch (e) {
    if (e.status === 401) needKey();
    else if (e.status === 403) notice(texts.refused(403));
  }
  try {
    const { voices = [], uploaded_voices: more = [] } = await ask('v1/audio/voices');
    const name = (v) => (typeof v === 'string' ? v : v.name);
    offer('voice', [...new Set([...voices, ...more].map(name))], 'as the graph has it');
  } catch {
    $('voice-field').hidden = true;
  }
}

// ---- hands

$('start').onclick = () => {
  if (connection !== 'connecting') open({ microphone: true });
};
$('end').onclick = () => {
  talk.end();
  show();
};
$('stop').onclick = () => talk.interrupt();
$('mute').onclick = () => {
  muted = !muted;
  sound.mute(muted);
  show();
};
$('notice-close').onclick = () => notice('');
$('voice').onchange = () => talk.setVoice(chosen($('voice')));
$('model').onchange = () => {
  if (talk.open) {
    talk.end();
    view.rule($('model').value);
  }
};
for (const radio of document.querySelectorAll('input[name=mode]')) {
  radio.onchange = () => {
    talk.setMode(radio.value);
    show();
  };
  if (radio.checked) talk.setMode(radio.value);
}

$('hold').onpointerdown = (e) => {
  $('hold').setPointerCapture(e.pointerId);
  talk.push();
};
$('hold').onpointerup = $('hold').onpointercancel = () => talk.release();
$('hold').oncontextmenu = (e) => e.preventDefault();
addEventListener('blur', () => talk.release());

// Space holds the button wherever it does not already mean something.
const typing = (e) => e.target.closest?.('input, select, summary, a, button:not(#hold)');
addEventListener('keydown', (e) => {
  if (e.key === 'Escape' && talk.busy) return void talk.interrupt();
  const holds = e.key === ' ' || (e.key === 'Enter' && e.target === $('hold'));
  if (!holds || typing(e) || $('hold').hidden) return;
  e.preventDefault();
  if (!e.repeat) talk.push();
});
addEventListener('keyup', (e) => {
  if (e.key === ' ' || e.key === 'Enter') talk.release();
});

$('composer').onsubmit = async (e) => {
  e.preventDefault();
  const text = $('text').value.trim();
  if (!text || (!talk.open && !(await open({ microphone: false })))) return;
  if (talk.write(text)) $('text').value = '';
};

addEventListener('pagehide', () => talk.end());

// ---- the graph

const graph = new LiveGraph({
  box: $('graph'),
  legend: $('legend'),
  rows: $('edges'),
  details: $('figures'),
  sessions: $('sessions'),
});

// What stands there instead of a conversation.
function serves({ graph: name, nodes, edges }) {
  const kinds = (client) =>
    nodes.flatMap((n, i) => {
      const edge = edges.find((e) => (client === 'in' ? e.from : e.to) === i);
      return n.client === client && edge ? [`${edge.kind} (${n.name})`] : [];
    });
  const list = (all) => (all.length > 0 ? all.join(', ') : 'nothing');
  return `It takes ${list(kinds('in'))} and gives ${list(kinds('out'))}. Programs use it over HTTP; here you see ${name} at work.`;
}

const stats = watch({
  address: new URL('v1/omni/stats', base),
  key: () => key,
  on: {
    graph(shape) {
      $('graph-name').textContent = shape.graph;
      document.title = `${shape.graph} · omni-flow`;
      graph.shape(shape);
      talks = shape.realtime;
      document.body.classList.toggle('mute', !talks);
      if (!talks) {
        document.querySelector('#empty .big').textContent = 'This graph is not one to talk with.';
        $('empty-hint').textContent = serves(shape);
      }
      show();
    },
    stats: (now) => graph.stats(now),
    failed(status) {
      $('sessions').textContent = status === 0 ? 'no connection' : '';
      const empty = $('graph-empty');
      if (empty) empty.textContent = texts.refused(status);
      if (status === 401) needKey();
    },
  },
});

choices();
show();
