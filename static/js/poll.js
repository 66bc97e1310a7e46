// Ask for JSON again and again: not while nobody looks, at once when somebody looks again, and slower while it fails.

const SLOWEST = 30_000;
const PATIENCE = 8000;

/**
 * Call `receive(json)` with what `url` gives, every `wait` ms; `failed(error)` when it gives nothing. One request at a
 * time. Returns a function that asks at once.
 */
export function poll(url, wait, receive, failed = () => {}) {
  let timer = 0;
  let asking = false;
  let faults = 0;

  async function ask() {
    clearTimeout(timer);
    if (asking || document.hidden) return;
    asking = true;
    try {
      const response = await fetch(url, { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
      if (!response.ok) throw new Error(`the server answered with ${response.status}`);
      const found = await response.json();
      if (!document.hidden) receive(found);
      faults = 0;
    } catch (error) {
      faults += 1;
      failed(error);
    } finally {
      asking = false;
      timer = setTimeout(ask, Math.min(wait * 2 ** Math.min(faults, 3), Math.max(SLOWEST, wait)));
    }
  }

  document.addEventListener("visibilitychange", ask);
  ask();
  return ask;
}
