// What was said, in the order in which it was said. What of an answer nobody heard stays visible as such.

import { drawTiming } from './timing.js';

export class Transcript {
  constructor({ list, scroller, empty, announcer }) {
    Object.assign(this, { list, scroller, empty, announcer });
    this.items = new Map();
  }

  // The entry of an item; made if it is new. `after` is the entry that it follows.
  entry(id, who, after) {
    let entry = this.items.get(id);
    if (entry) return entry;
    const row = document.createElement('li');
    row.className = who;
    row.dataset.item = id;
    const name = document.createElement('span');
    name.className = 'who';
    name.textContent = who === 'user' ? 'You' : 'Answer';
    const text = document.createElement('p');
    text.className = 'text';
    text.dir = 'auto';
    const strip = document.createElement('div');
    strip.className = 'timing';
    row.append(name, text, strip);
    entry = { id, who, row, text, strip, said: '', state: '' };
    this.items.set(id, entry);
    this.empty.hidden = true;
    this.keepDown(() => {
      const before = after && this.items.get(after)?.row;
      if (before) before.after(row);
      else this.list.append(row);
    });
    return entry;
  }

  // Changes something, and stays at the end if that is where the reader is.
  keepDown(change) {
    const { scroller } = this;
    const down = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
    change();
    if (down) scroller.scrollTop = scroller.scrollHeight;
  }

  // The user speaks, and nobody knows yet what.
  speaking(id, after) {
    const entry = this.entry(id, 'user', after);
    entry.row.classList.add('pending');
    if (!entry.said) entry.text.textContent = '…';
  }

  user(id, said, after) {
    const entry = this.entry(id, 'user', after);
    entry.row.classList.remove('pending');
    entry.said = said;
    this.keepDown(() => entry.text.replaceChildren(said || '(no words)'));
    entry.row.classList.toggle('wordless', !said);
    if (said) this.announce(`You: ${said}`);
  }

  forget(id) {
    const entry = this.items.get(id);
    if (!entry) return;
    entry.row.remove();
    this.items.delete(id);
    this.empty.hidden = this.items.size > 0;
  }

  // More of an answer.
  add(id, more) {
    const entry = this.entry(id, 'partner');
    entry.said += more;
    if (entry.state === '') this.keepDown(() => entry.text.replaceChildren(entry.said));
  }

  // An answer is whole.
  done(id) {
    const entry = this.items.get(id);
    if (entry?.state === '' && entry.said) {
      entry.state = 'done';
      this.announce(`Answer: ${entry.said}`);
    }
  }

  // Of an answer only `kept` was heard.
  cut(id, kept) {
    const entry = this.items.get(id);
    if (!entry || entry.state === 'cut') return;
    entry.state = 'cut';
    const said = entry.said;
    const whole = said.startsWith(kept) ? kept.length : Math.min(kept.length, said.length);
    const heard = said.slice(0, whole);
    const lost = said.slice(whole);
    this.keepDown(() => {
      entry.row.classList.add('cut');
      const rest = document.createElement('s');
      rest.textContent = lost.trimEnd();
      rest.setAttribute('aria-label', `not heard: ${lost.trim()}`);
      const note = document.createElement('span');
      note.className = 'note';
      note.textContent = heard ? 'interrupted' : 'not heard';
      entry.text.replaceChildren(heard, ...(lost.trim() ? [rest] : []), ' ', note);
    });
    this.announce(heard ? `Answer, interrupted: ${heard}` : 'The answer was interrupted before it was heard.');
  }

  failed(id, why) {
    const entry = this.entry(id, 'partner');
    entry.state = 'failed';
    entry.row.classList.add('failed');
    const note = document.createElement('span');
    note.className = 'note';
    note.textContent = why;
    this.keepDown(() => entry.text.replaceChildren(entry.said, ' ', note));
  }

  timing(id, timing) {
    const entry = this.items.get(id);
    if (entry) this.keepDown(() => drawTiming(entry.strip, timing));
  }

  // A line between two conversations.
  rule(text) {
    if (this.items.size === 0) return;
    const row = document.createElement('li');
    row.className = 'rule';
    row.textContent = text;
    this.keepDown(() => this.list.append(row));
  }

  announce(text) {
    const line = document.createElement('span');
    line.textContent = text;
    this.announcer.append(line);
    while (this.announcer.childElementCount > 20) this.announcer.firstChild.remove();
  }
}
