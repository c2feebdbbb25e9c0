// Reads the stream of figures while the page is visible.

export function watch({ address, key, on }) {
  let reading;
  let delay = 500;

  async function read() {
    const mine = new AbortController();
    reading = mine;
    try {
      const headers = key() ? { Authorization: `Bearer ${key()}` } : {};
      const response = await fetch(address, { headers, signal: mine.signal, cache: 'no-store' });
      if (!response.ok) {
        on.failed(response.status);
      } else {
        delay = 500;
        await events(response.body.pipeThrough(new TextDecoderStream()).getReader());
      }
    } catch {
      if (!mine.signal.aborted) on.failed(0);
    }
    if (reading !== mine) return;
    reading = undefined;
    setTimeout(() => {
      if (!reading && !document.hidden) read();
    }, delay);
    delay = Math.min(delay * 2, 10000);
  }

  async function events(reader) {
    let held = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (held + value).split('\n\n');
      held = parts.pop();
      for (const part of parts) {
        let name = '';
        let data = '';
        for (const line of part.split('\n')) {
          if (line.startsWith('event:')) name = line.slice(6).trim();
          else if (line.startsWith('data:')) data += line.slice(5);
        }
        if (data) on[name]?.(JSON.parse(data));
      }
    }
  }

  function restart() {
    const old = reading;
    reading = undefined;
    old?.abort();
    delay = 500;
    if (!document.hidden) read();
  }

  // Nobody looks: nobody needs to be told.
  document.addEventListener('visibilitychange', restart);
  restart();
  return { restart };
}
