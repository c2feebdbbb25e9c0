// A headless Chromium that hears a file instead of a microphone, and pages whose sound and sockets can be looked at.

import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export async function launch(microphone) {
  const executablePath = process.env.CHROMIUM ?? PATHS.find(existsSync);
  if (!executablePath) throw new Error('no Chromium found; set CHROMIUM to its path');
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--autoplay-policy=no-user-gesture-required',
    '--use-fake-device-for-media-stream',
    '--use-fake-ui-for-media-stream',
    `--use-file-for-fake-audio-capture=${microphone}`,
  ];
  return chromium.launch({ executablePath, args, headless: true });
}

// Runs before the page's own scripts: keeps sockets, and listens beside the loudspeaker.
function spy() {
  window.spy = { sockets: [], loud: [] };
  const Own = WebSocket;
  window.WebSocket = class extends Own {
    constructor(...given) {
      super(...given);
      window.spy.sockets.push(this);
    }
  };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (to, ...rest) {
    if (to instanceof AudioDestinationNode) {
      const ear = new AnalyserNode(this.context, { fftSize: 2048 });
      connect.call(this, ear);
      const wave = new Float32Array(ear.fftSize);
      setInterval(() => {
        ear.getFloatTimeDomainData(wave);
        const rms = Math.sqrt(wave.reduce((sum, x) => sum + x * x, 0) / wave.length);
        window.spy.loud.push([performance.now(), rms]);
      }, 10);
    }
    return connect.call(this, to, ...rest);
  };
}

// A page at `url`. `seen` collects what it does: events of its sockets with times, errors, requests elsewhere.
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, permissions: ['microphone'], ...options });
  await context.addInitScript(spy);
  const page = await context.newPage();
  const seen = { received: [], sent: [], errors: [], elsewhere: [] };
  page.on('pageerror', (e) => seen.errors.push(String(e)));
  // A graph with one voice has no list of voices.
  const voices = (m) => m.location().url.endsWith('/v1/audio/voices');
  page.on('console', (m) => m.type() === 'error' && !voices(m) && seen.errors.push(m.text()));
  page.on('request', (r) => new URL(r.url()).host !== new URL(url).host && seen.elsewhere.push(r.url()));
  page.on('websocket', (socket) => {
    const keep = (list) => ({ payload }) => list.push(JSON.parse(payload));
    socket.on('framereceived', keep(seen.received));
    socket.on('framesent', keep(seen.sent));
  });
  await page.goto(url);
  return { page, seen, context };
}

// Waits until `look` gives something.
export async function until(look, what, limit = 30000) {
  const end = Date.now() + limit;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

// The loudest that the page was within the last `ms`, in its own sound.
export const loudness = (page, ms) =>
  page.evaluate((ms) => {
    const from = performance.now() - ms;
    return Math.max(0, ...window.spy.loud.filter(([at]) => at >= from).map(([, rms]) => rms));
  }, ms);
