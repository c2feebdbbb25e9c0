// One conversation: what goes to the server, what comes from it, and what was really heard of each answer.
//
// The server makes answers faster than they are heard. So an interruption acts here first: the loudspeaker falls silent at
// once, the server is told how much was heard (`conversation.item.truncate`), and what it keeps of the answer
// (`conversation.item.retrieve`) is what the transcript shows as heard.

import { Realtime } from './realtime.js';
import { Timing } from './timing.js';
import * as texts from './texts.js';

const ACK_MS = 400;
// A shorter push is a slip.
const PUSH_MS = 150;
// Characters of an answer that are said in a second, as long as none has been heard to its end.
const PACE = 15;
// Sent audio whose times are remembered: a minute.
const REMEMBERED = 3000;


export class Conversation {
  // `view` is the transcript; `on` has state(name), notice(text), refused(error).
  constructor({ sound, view, on, base }) {
    Object.assign(this, { sound, view, on, base });
    this.mode = 'free';
    this.names = 0;
    this.pace = PACE;
    this.reset();
  }

  reset() {
    this.response = undefined; // the one under way: {id, item, spoken}
    this.silenced = new Set(); // responses whose audio nobody wants any more
    this.answers = new Map(); // by item: {response, made (ms), played (ms), cut, timing}
    this.playing = undefined; // the item that is being heard
    this.sent = []; // [end in the session's audio (ms), when it was sent]
    this.sentMs = 0;
    this.asked = undefined; // the timing of the turn that is to be answered
    this.waiting = []; // what to do once no response is under way
    this.pushed = undefined; // when the button was pressed
    this.acked = 0;
  }

  get open() {
    return this.link !== undefined && !this.link.over;
  }

  get capabilities() {
    return this.link?.session?.capabilities ?? {};
  }

  get busy() {
    return this.response !== undefined || this.playing !== undefined;
  }

  // Opens the conversation, if it is not open. Fails with `Refused`.
  async start({ model, key, voice }) {
    if (this.open) return;
    this.reset();
    this.opening ??= (async () => {
      this.on.state('connecting');
      const link = new Realtime({ base: this.base, model, key, on: this.hooks() });
      await link.open();
      this.link = link;
      this.voice = voice;
      this.configure();
      this.on.state('open');
    })();
    try {
      await this.opening;
    } catch (e) {
      this.on.state('closed');
      throw e;
    } finally {
      this.opening = undefined;
    }
  }

  hooks() {
    return {
      event: (event) => this.take(event),
      lost: () => this.on.state('lost'),
      back: () => this.on.state('open'),
      anew: () => {
        this.sound.stop();
        this.reset();
        this.view.rule('a new conversation');
        this.configure();
        this.on.state('open');
        this.on.notice(texts.anew);
      },
      closed: (reason) => {
        this.sound.stop();
        this.response = this.playing = undefined;
        this.on.state('closed');
        this.on.notice(texts.closed(reason));
      },
    };
  }

  end() {
    this.sound.stop();
    this.link?.close();
    this.link = undefined;
    this.response = this.playing = undefined;
    this.on.state('closed');
  }

  // Tells the server how turns are told, and which voice is wanted.
  configure() {
    const interrupts = Boolean(this.capabilities.supports_barge_in);
    const vad = { type: 'server_vad', create_response: true, interrupt_response: interrupts };
    const input = { turn_detection: this.mode === 'push' ? null : vad };
    const audio = this.voice ? { input, output: { voice: this.voice } } : { input };
    this.send({ type: 'session.update', session: { type: 'realtime', audio } });
  }

  setMode(mode) {
    this.mode = mode;
    this.pushed = undefined;
    if (this.open) this.configure();
  }

  setVoice(voice) {
    this.voice = voice;
    if (this.open) this.configure();
  }

  send(event) {
    return this.link?.send(event) ?? false;
  }

  // Does `act` once no response is under way.
  whenIdle(act) {
    if (this.response) this.waiting.push(act);
    else act();
  }

  // ---- what the user does

  // 20 ms from the microphone.
  heard(audio) {
    if (this.mode === 'push' && this.pushed === undefined) return;
    if (!this.send({ type: 'input_audio_buffer.append', audio })) return;
    this.sentMs += 20;
    this.sent.push([this.sentMs, performance.now()]);
    if (this.sent.length > REMEMBERED) this.sent.shift();
  }

  push() {
    if (this.mode !== 'push' || this.pushed !== undefined || !this.open) return;
    this.link.touch();
    this.interrupt();
    this.send({ type: 'input_audio_buffer.clear' });
    this.pushed = performance.now();
    this.on.state('open');
  }

  release() {
    if (this.pushed === undefined) return;
    const long = performance.now() - this.pushed >= PUSH_MS;
    this.pushed = undefined;
    this.on.state('open');
    if (!long) {
      this.send({ type: 'input_audio_buffer.clear' });
      return this.on.notice(texts.error({ code: 'input_audio_buffer_commit_empty' }));
    }
    this.asked = new Timing('push', performance.now());
    this.send({ type: 'input_audio_buffer.commit' });
    this.whenIdle(() => this.send({ type: 'response.create' }));
  }

  write(text) {
    this.link.touch();
    this.interrupt();
    const id = `item_page_${Date.now().toString(36)}${(this.names++).toString(36)}`;
    const content = [{ type: 'input_text', text }];
    const item = { id, type: 'message', role: 'user', content };
    if (!this.send({ type: 'conversation.item.create', item })) return false;
    this.view.user(id, text);
    const timing = new Timing('text', performance.now());
    this.whenIdle(() => {
      this.asked = timing;
      this.send({ type: 'response.create' });
    });
    return true;
  }

  // Silence, now.
  async interrupt() {
    const { response } = this;
    if (response && !this.silenced.has(response.id)) {
      this.silenced.add(response.id);
      this.send({ type: 'response.cancel', response_id: response.id });
    }
    await this.silence();
  }

  // The loudspeaker falls silent, and the server learns what was heard until then.
  async silence() {
    const before = this.playing;
    this.playing = undefined;
    const { item, played } = await this.sound.stop();
    this.on.state('open');
    const id = item ?? before;
    if (id) this.cut(id, item ? played : 0);
  }

  // Of `id` so much was heard, in ms, and no more will be.
  cut(id, played) {
    const answer = this.answers.get(id);
    if (!answer || answer.cut || answer.heard) return;
    answer.cut = true;
    const end = Math.max(0, Math.floor(Math.min(played, answer.made)));
    answer.most = this.spoken(id, answer, end);
    const guess = () => this.view.cut(id, answer.most);
    if (!this.capabilities.supports_audio_truncate) return guess();
    answer.guess = guess;
    const event = { type: 'conversation.item.truncate', item_id: id, content_index: 0, audio_end_ms: end };
    if (!this.send({ ...event, event_id: `cut:${id}` })) guess();
  }

  // What of an answer can have been said by `end` ms. Its words come before its sound: of one that was not finished nobody
  // knows how long it would have been, so there it is what is said in so much time.
  spoken(id, answer, end) {
    const said = this.view.items.get(id)?.said ?? '';
    const count = answer.whole ? (said.length * end) / Math.max(1, answer.made) : (end / 1000) * this.pace;
    if (count >= said.length) return said;
    // No word is said by halves.
    const space = said.lastIndexOf(' ', count);
    return space > 0 ? said.slice(0, space + 1) : '';
  }

  // ---- what the loudspeaker tells

  started(item) {
    this.playing = item;
    const answer = this.answers.get(item);
    if (answer?.timing?.mark('audio')) this.view.timing(item, answer.timing);
    this.on.state('open');
  }

  progress(item, played) {
    const answer = this.answers.get(item);
    if (!answer || answer.cut) return;
    answer.played = played;
    const now = performance.now();
    if (now - this.acked >= ACK_MS) this.acknowledge(item, played, now);
  }

  finished(item) {
    if (this.playing === item) this.playing = undefined;
    const answer = this.answers.get(item);
    if (answer && !answer.cut) {
      answer.heard = true;
      const said = this.view.items.get(item)?.said.length ?? 0;
      if (answer.made > 1000 && said > 20) this.pace = said / (answer.made / 1000);
      this.acknowledge(item, answer.made, performance.now());
    }
    this.on.state('open');
  }

  acknowledge(item, played, now) {
    const answer = this.answers.get(item);
    if (!this.capabilities.supports_playback_ack || !answer) return;
    this.acked = now;
    const heard = Math.floor(Math.min(played, answer.made));
    this.send({ type: 'playback.ack', response_id: answer.response, item_id: item, played_ms: heard });
  }

  // ---- what the server tells

  take(event) {
    const act = EVENTS[event.type];
    if (act) act(this, event);
  }

  // When the sample at `ms` of the session's audio was sent. The detector was sure only after its silence.
  spokenUntil(ms) {
    const { silence_duration_ms: silence = 500 } = this.link.session.turn_detection ?? {};
    const latest = performance.now() - silence;
    const at = this.sent.find(([end]) => end >= ms)?.[1] ?? latest;
    return Math.min(at, latest);
  }

  answer(item, response) {
    let answer = this.answers.get(item);
    if (!answer) {
      answer = { response, made: 0, played: 0, cut: false, timing: this.asked };
      this.asked = undefined;
      this.answers.set(item, answer);
    }
    return answer;
  }

  words({ item_id: item, response_id: response, delta }) {
    if (!delta) return;
    const answer = this.answer(item, response);
    this.view.add(item, delta);
    if (answer.timing?.mark('word')) this.view.timing(item, answer.timing);
  }

  audio({ item_id: item, response_id: response, delta, sample_rate_hz: rate = 24000 }) {
    const answer = this.answer(item, response);
    answer.made += (delta.length * 3) / 4 / 2 / (rate / 1000);
    if (answer.cut || this.silenced.has(response)) return;
    this.sound.play(item, delta, rate);
  }

  ended({ id, status, status_details: details, output }) {
    const item = this.response?.id === id ? this.response.item : output?.find((o) => o.type === 'message')?.id;
    this.response = undefined;
    this.silenced.add(id);
    if (status === 'cancelled') {
      // Also one that the server ended by itself, and of which nothing had been heard yet.
      const silent = this.playing === item || this.playing === undefined ? this.silence() : Promise.resolve();
      silent.then(() => item && this.cut(item, this.answers.get(item)?.played ?? 0));
    } else if (status === 'failed') {
      this.view.failed(item ?? id, texts.error(details?.error ?? {}));
    } else if (item) {
      if (this.answers.has(item)) this.answers.get(item).whole = true;
      this.sound.end(item);
      this.view.done(item);
    }
    for (const act of this.waiting.splice(0)) act();
    this.on.state('open');
  }

  error({ code, message, event_id: cause }) {
    if (cause?.startsWith('cut:') || cause?.startsWith('kept:')) {
      const item = cause.slice(cause.indexOf(':') + 1);
      return this.answers.get(item)?.guess?.();
    }
    if (!texts.quiet(code)) this.on.notice(texts.error({ code, message }));
  }
}

const EVENTS = {
  'input_audio_buffer.speech_started'(me, { item_id: item }) {
    if (me.mode === 'free' && me.link.session.turn_detection?.interrupt_response) {
      // The server ends the response by itself; what is on its way here must not be heard either.
      if (me.response) me.silenced.add(me.response.id);
      if (me.busy) me.silence();
    }
    me.view.speaking(item);
    me.speaking = true;
    me.on.state('open');
  },
  'input_audio_buffer.speech_stopped'(me, { audio_end_ms: end }) {
    me.speaking = false;
    if (me.mode === 'free') me.asked = new Timing('speech', me.spokenUntil(end));
    me.on.state('open');
  },
  'input_audio_buffer.committed'(me, { item_id: item, previous_item_id: after, event }) {
    me.speaking = false;
    if (event?.no_response) me.view.forget(item);
    else me.view.speaking(item, after);
  },
  'conversation.item.input_audio_transcription.completed'(me, { item_id: item, transcript }) {
    me.asked?.mark('heard');
    me.view.user(item, transcript.trim());
  },
  'conversation.item.done'(me, { item }) {
    // The graph writes nothing down, or there was nothing to write.
    if (item.role === 'user' && me.view.items.get(item.id)?.row.classList.contains('pending')) {
      me.view.user(item.id, item.content?.map((c) => c.text ?? c.transcript ?? '').join(' ').trim());
    }
  },
  'conversation.item.truncated'(me, { item_id: item }) {
    me.send({ type: 'conversation.item.retrieve', item_id: item, event_id: `kept:${item}` });
  },
  'conversation.item.retrieved'(me, { item }) {
    const kept = item.content?.map((c) => c.transcript ?? c.text ?? '').join('') ?? '';
    const most = me.answers.get(item.id)?.most ?? kept;
    me.view.cut(item.id, kept.length < most.length ? kept : most);
  },
  'response.created'(me, { response }) {
    me.response = { id: response.id };
    me.on.state('open');
  },
  'response.output_item.added'(me, { response_id: response, item }) {
    if (item.type !== 'message') return;
    me.answer(item.id, response);
    if (me.response?.id === response) me.response.item = item.id;
  },
  'response.output_audio_transcript.delta': (me, event) => me.words(event),
  'response.output_text.delta': (me, event) => me.words(event),
  'response.output_audio.delta': (me, event) => me.audio(event),
  'response.output_audio.done': (me, { item_id: item }) => me.sound.end(item),
  'response.done': (me, { response }) => me.ended(response),
  error: (me, { error }) => me.error(error),
};
