// Drives the page of a served graph as a person would: `node page.test.mjs URL [--key KEY] [--microphone WAV] [--shots DIR]`.
// See README.md.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch, loudness, until, visit } from './browser.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { key: { type: 'string' }, microphone: { type: 'string' }, shots: { type: 'string' } },
});
const url = positionals[0] ?? 'http://127.0.0.1:8080/';
const microphone = values.microphone ?? fileURLToPath(new URL('../data/audio/11_browser_mic_48k.wav', import.meta.url));
if (values.shots) mkdirSync(values.shots, { recursive: true });

const browser = await launch(microphone);
let failed = 0;

// Those that are open: each lets go of its session, whatever became of its check.
const visits = [];
async function leave() {
  for (const { page, context } of visits.splice(0)) {
    await page.evaluate(() => document.getElementById('end').click()).catch(() => {});
    await page.waitForTimeout(100).catch(() => {});
    await context.close();
  }
}

async function check(name, body) {
  const begun = Date.now();
  try {
    await body();
    await leave();
    console.log(`ok      ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
  } catch (e) {
    failed++;
    console.log(`FAILED  ${name}: ${e.stack}`);
    await leave();
  }
}

const shot = (page, name) => values.shots && page.screenshot({ path: join(values.shots, `${name}.png`) });

// A page that has been let in, its graph drawn.
async function enter(options) {
  const visited = await visit(browser, url, options);
  const { page } = visited;
  visits.push(visited);
  if (values.key) {
    await page.fill('#key', values.key);
    await page.press('#key', 'Enter');
    await page.waitForSelector('#graph .node');
    // The tab keeps it; what was refused before was to be.
    visited.seen.errors.length = 0;
    assert.ok(!page.url().includes(values.key), 'no address has the key in it');
    await page.reload();
  }
  await page.waitForSelector('#graph .node');
  return visited;
}

const words = (page, who) => page.$$eval(`#transcript .${who} .text`, (all) => all.map((p) => p.textContent));
const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
const speaking = (page) => page.evaluate(() => document.body.classList.contains('speaking'));
const last = (list, type) => list.findLast((e) => e.type === type);

await check('spoken words appear, the answer is heard, and an interruption stops it', async () => {
  const { page, seen } = await enter();
  await page.click('#start');
  await until(async () => (await words(page, 'user')).some((w) => w.length > 3 && w !== '…'), 'the words of the user');
  await until(async () => (await words(page, 'partner')).some((w) => w.length > 3), 'the words of the answer');
  await until(async () => (await loudness(page, 200)) > 0.01, 'sound');
  await page.waitForTimeout(700);
  await shot(page, 'talking');
  // The microphone's file begins again, and speaks into the answer.
  await page.waitForSelector('#transcript .partner.cut', { timeout: 60000 });
  await page.waitForTimeout(150);
  // The user still speaks: nothing is to be heard.
  assert.ok(!(await speaking(page)) && (await loudness(page, 100)) < 0.003, 'silent after an interruption');
  await shot(page, 'interrupted');
  const cut = await page.$eval('#transcript .partner.cut', (li) => [li.querySelector('s')?.textContent ?? '', li.textContent]);
  assert.ok(cut[0].length > 0, `what nobody heard is shown as such: ${cut}`);
  const truncated = last(seen.sent, 'conversation.item.truncate');
  assert.ok(truncated && Number.isInteger(truncated.audio_end_ms), 'the server is told how much was heard');
  assert.ok(last(seen.received, 'conversation.item.truncated'), 'and takes it');
  const strip = await page.$eval('#transcript .partner .timing p', (p) => p.textContent);
  for (const part of ['speech end', 'heard', 'first word', 'first audio']) assert.ok(strip.includes(part), strip);
  assert.ok(await page.$$eval('#legend b', (all) => all.some((b) => /[1-9]\d* fence/.test(b.textContent))), 'fences are counted');
  assert.ok(seen.sent.some((e) => e.type === 'playback.ack'), 'playback is acknowledged');
  assert.deepEqual(seen.received.filter((e) => e.type === 'error'), []);
  await page.click('#end');
  await until(() => last(seen.received, 'session.closed'), 'the end of the session');
  assert.deepEqual([seen.errors, seen.elsewhere], [[], []]);
});

await check('writing works, and the answer is stopped by hand', async () => {
  const { page, seen } = await enter();
  await page.fill('#text', 'What is a graph?');
  await page.press('#text', 'Enter');
  await until(async () => (await words(page, 'user')).includes('What is a graph?'), 'what was written');
  await until(async () => (await loudness(page, 200)) > 0.01, 'sound');
  await page.keyboard.press('Escape');
  await until(async () => !(await speaking(page)), 'silence', 3000);
  await page.waitForTimeout(250);
  assert.ok((await loudness(page, 100)) < 0.003, 'silent after Escape');
  await page.waitForSelector('#transcript .partner.cut');
  assert.ok(last(seen.sent, 'response.cancel'));
  assert.deepEqual(seen.sent.filter((e) => e.type === 'input_audio_buffer.append'), [], 'no microphone was asked for');
  assert.deepEqual(seen.errors, []);
});

await check('by keyboard alone, pushing to talk', async () => {
  const { page, seen } = await enter();
  const order = [];
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const { activeElement: e } = document;
      const outline = getComputedStyle(e.matches('.modes input') ? e.nextElementSibling : e).outlineStyle;
      return { id: e.id || e.name || e.className || e.tagName, visible: outline !== 'none' };
    });
    order.push(at);
    if (at.id === 'mode') break;
  }
  assert.deepEqual(order.map((o) => o.id), ['skip', 'words', 'text', 'send', 'start', 'mode']);
  assert.ok(order.every((o) => o.visible), `focus is visible: ${JSON.stringify(order)}`);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#hold:not([hidden])');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'hold', 'focus goes where the button went');
  await until(() => last(seen.received, 'session.updated')?.session.turn_detection === null, 'turns by hand');
  await page.waitForTimeout(200);
  assert.equal(last(seen.sent, 'input_audio_buffer.append'), undefined, 'nothing is sent before the push');
  await page.keyboard.down('Space');
  await page.waitForTimeout(3000);
  await page.keyboard.up('Space');
  await until(() => last(seen.sent, 'response.create'), 'a question');
  await until(async () => (await words(page, 'user')).some((w) => w.length > 3), 'the words of the user');
  await until(async () => (await loudness(page, 200)) > 0.01, 'sound');
  await shot(page, 'push');
  const heard = await page.$$eval('#announcer span', (all) => all.map((s) => s.textContent));
  assert.ok(heard.some((t) => t.startsWith('You: ')), `a screen reader is told: ${heard}`);
  assert.deepEqual(seen.errors, []);
});

await check('a lost connection goes on where it broke', async () => {
  const { page, seen } = await enter();
  await page.fill('#text', 'Stay with me.');
  await page.press('#text', 'Enter');
  await until(async () => (await words(page, 'partner')).some((w) => w.length > 20), 'half an answer');
  const before = last(seen.received, 'session.created');
  await page.evaluate(() => window.spy.sockets.at(-1).close());
  await until(() => last(seen.received, 'session.resumed'), 'the resume');
  assert.equal(last(seen.received, 'session.resumed').session.id, before.session.id);
  await until(() => last(seen.received, 'response.done'), 'the end of the answer', 60000);
  const said = (await words(page, 'partner'))[0].trim();
  const done = last(seen.received, 'response.done').response.output[0].content[0].transcript.trim();
  assert.equal(said, done, 'no word is missing and none is there twice');
  const resumed = seen.received.findIndex((e) => e.type === 'session.resumed');
  const numbers = seen.received.slice(resumed).map((e) => e.server_event_seq).filter(Boolean);
  const from = last(seen.sent, 'session.resume').last_received_server_event_seq + 1;
  assert.ok(from > 1, 'it asks for what it has not seen');
  assert.deepEqual(numbers, numbers.map((_, i) => from + i), 'and gets just that');
});

await check('what is wrong is said in words', async () => {
  const { page, seen } = await enter();
  const said = () => page.textContent('#notice-text');
  await page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotAllowedError'));
  });
  await page.click('#start');
  await until(async () => (await said()).includes('The microphone is not allowed'), 'words about the microphone');
  await shot(page, 'no-microphone');
  await page.fill('#text', 'Writing works all the same.');
  await page.press('#text', 'Enter');
  await until(async () => (await words(page, 'partner')).some((w) => w.length > 3), 'an answer');
  await page.click('#end');
  // Others take all places.
  await page.evaluate(async (key) => {
    window.others = [];
    const address = new URL('v1/realtime', location.href.replace('http', 'ws'));
    const protocols = key ? ['realtime', `openai-insecure-api-key.${key}`] : ['realtime'];
    const first = (socket) => new Promise((resolve) => (socket.onmessage = ({ data }) => resolve(JSON.parse(data))));
    for (;;) {
      const socket = new WebSocket(address, protocols);
      const { type, error } = await first(socket);
      if (type === 'error') return error.code;
      window.others.push(socket);
    }
  }, values.key);
  await page.fill('#text', 'Is there room?');
  await page.press('#text', 'Enter');
  await until(async () => (await said()).includes('The server is full'), 'words about the server');
  assert.equal(await page.inputValue('#text'), 'Is there room?', 'what was written is still there');
  await page.evaluate(() => window.others.forEach((socket) => socket.send(JSON.stringify({ type: 'session.close' }))));
  await until(async () => {
    await page.press('#text', 'Enter');
    return (await words(page, 'user')).includes('Is there room?');
  }, 'a place');
  assert.deepEqual(seen.errors, []);
});

await check('phones, light and dark', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const { page, seen } = await enter({ viewport: { width: 360, height: 740 }, colorScheme, deviceScaleFactor: 2 });
    assert.ok(await fits(page), 'nothing is wider than the phone');
    await page.click('#start');
    await until(async () => (await loudness(page, 200)) > 0.01, 'sound');
    await page.waitForTimeout(600);
    assert.ok(await fits(page), 'nor while it talks');
    await shot(page, `phone-${colorScheme}`);
    await page.click('#figures summary');
    await page.evaluate(() => document.querySelector('#work').scrollIntoView());
    await page.waitForTimeout(400);
    assert.ok(await fits(page), 'nor with the figures open');
    await shot(page, `phone-graph-${colorScheme}`);
    const contrast = await page.evaluate(() => {
      const light = (color) => {
        const parts = color.match(/[\d.]+/g).slice(0, 3).map((v) => v / 255);
        const [r, g, b] = parts.map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const pair = (text, ground) => {
        const [a, b] = [light(getComputedStyle(text).color), light(getComputedStyle(ground).backgroundColor)];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      };
      const $ = (s) => document.querySelector(s);
      return { body: pair(document.body, $('.card')), soft: pair($('#sessions'), $('.card')), end: pair($('#end'), $('#end')) };
    });
    for (const [what, ratio] of Object.entries(contrast)) assert.ok(ratio >= 4.5, `${colorScheme}: ${what} has a contrast of ${ratio}`);
    assert.deepEqual(seen.errors, []);
    await leave();
  }
  const { page } = await enter({ colorScheme: 'dark' });
  await page.click('#start');
  await until(async () => (await loudness(page, 200)) > 0.01, 'sound');
  await page.waitForTimeout(900);
  await shot(page, 'dark');
});

await browser.close();
process.exit(failed ? 1 : 0);
