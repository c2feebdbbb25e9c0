// The socket of one conversation: opens it, and goes on over another one where the connection broke.

// For so long the server keeps a conversation whose socket is gone.
const GRACE_MS = 28000;
const OPEN_MS = 10000;
const ACK_MS = 2000;
const BEAT_MS = 60000;
// After so long without anybody doing anything the conversation is not kept alive any more.
const AWAY_MS = 600000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// True if a browser can send this key.
export const sendable = (key) => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(key);

// A way in that failed: `code` and `message` as the server says, or `status` of its HTTP answer (0: none).
export class Refused extends Error {
  constructor({ code, message, status }) {
    super(message ?? '');
    Object.assign(this, { code, status });
  }
}

export class Realtime {
  // `on` has event(event), lost(), back(), anew(session), closed(reason).
  constructor({ base, model, key, on }) {
    Object.assign(this, { base, model, key, on });
    this.seen = 0;
    this.acknowledged = 0;
    this.touched = performance.now();
  }

  // Opens a conversation; gives its session.
  async open() {
    const created = await this.connect(false);
    this.settle(created);
    this.timers = [setInterval(() => this.acknowledge(), ACK_MS), setInterval(() => this.beat(), BEAT_MS)];
    return created.session;
  }

  settle({ session, resume_token: token }) {
    this.session = session;
    this.token = token;
  }

  get connected() {
    return this.socket?.readyState === WebSocket.OPEN && !this.mending;
  }

  // False if there is no connection at the moment; then nothing was sent.
  send(event) {
    if (!this.connected) return false;
    this.socket.send(JSON.stringify(event));
    return true;
  }

  // Somebody is there.
  touch() {
    this.touched = performance.now();
  }

  close() {
    if (this.over) return;
    this.send({ type: 'session.close' });
    this.finish();
    const { socket } = this;
    setTimeout(() => socket?.close(), 1000);
  }

  finish() {
    this.over = true;
    for (const timer of this.timers ?? []) clearInterval(timer);
  }

  // One socket up to its first event: `session.created`, or `session.resumed`.
  connect(resume) {
    const address = new URL('v1/realtime', this.base);
    address.protocol = address.protocol.replace('http', 'ws');
    if (this.model) address.searchParams.set('model', this.model);
    if (resume) address.searchParams.set('resume', '1');
    const protocols = ['realtime'];
    if (this.key) protocols.push(`openai-insecure-api-key.${this.key}`);
    const socket = new WebSocket(address, protocols);
    this.socket = socket;
    return new Promise((resolve, reject) => {
      let refusal;
      let ready = false;
      const late = setTimeout(() => socket.close(), OPEN_MS);
      const first = (event) => {
        if (event.type === 'error') refusal = event.error;
        if (event.type === 'session.resync_required') refusal ??= { code: event.reason };
        if (event.type !== 'session.created' && event.type !== 'session.resumed') return;
        ready = true;
        clearTimeout(late);
        resolve(event);
      };
      socket.onopen = () => {
        if (!resume) return;
        const { id } = this.session;
        const last = this.seen;
        const claim = { session_id: id, resume_token: this.token, last_received_server_event_seq: last };
        socket.send(JSON.stringify({ type: 'session.resume', ...claim }));
      };
      socket.onmessage = ({ data }) => {
        if (this.socket !== socket) return;
        const event = JSON.parse(data);
        if (!ready) first(event);
        if (ready) this.take(event);
      };
      socket.onclose = () => {
        clearTimeout(late);
        if (!ready) this.why(refusal).then(reject);
        else if (this.socket === socket) this.broken();
      };
    });
  }

  // Browsers do not say why a socket did not open; the same door asked over HTTP does.
  async why(refusal) {
    if (refusal) return new Refused(refusal);
    try {
      const headers = this.key ? { Authorization: `Bearer ${this.key}` } : {};
      const { ok, status } = await fetch(new URL('v1/models', this.base), { headers, cache: 'no-store' });
      return new Refused({ status: ok ? 404 : status });
    } catch {
      return new Refused({ status: 0 });
    }
  }

  take(event) {
    const number = event.server_event_seq;
    if (number <= this.seen) return;
    if (number) this.seen = number;
    if (event.type === 'session.updated') this.session = event.session;
    if (event.type === 'session.closed' || event.type === 'session.expired' || event.type === 'session.replaced') {
      const wanted = this.over;
      this.finish();
      if (!wanted) this.on.closed(event.type === 'session.replaced' ? 'session_replaced' : event.reason);
      return;
    }
    this.on.event(event);
  }

  acknowledge() {
    if (this.seen > this.acknowledged && this.token && this.send({ type: 'session.event_ack', server_event_seq: this.seen })) {
      this.acknowledged = this.seen;
    }
  }

  beat() {
    if (performance.now() - this.touched < AWAY_MS) this.send({ type: 'session.heartbeat' });
  }

  async broken() {
    if (this.over || this.mending) return;
    this.mending = true;
    this.on.lost();
    const since = performance.now();
    let refused;
    for (let delay = 250; !this.over; delay = Math.min(delay * 2, 4000)) {
      // Not all of those who were thrown out at once come back at once.
      await sleep(delay * (0.75 + Math.random() / 2));
      const resume = Boolean(this.token) && !refused && performance.now() - since < GRACE_MS;
      try {
        const event = await this.connect(resume);
        if (this.over) return this.socket.close();
        this.settle(event);
        this.mending = false;
        if (resume) return this.on.back();
        this.seen = this.acknowledged = 0;
        return this.on.anew(event.session);
      } catch (e) {
        // The server answered, and has this conversation no more.
        if (resume && e.code) refused = e;
        else if (e.code || e.status === 401 || e.status === 403) {
          this.finish();
          return this.on.closed(e.code ?? e.status, e);
        }
      }
    }
  }
}
