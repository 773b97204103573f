// What the page asks of the server that it came from, or of the one behind it.
const ROOT = new URL("../", document.baseURI); // the page is at .../playground/
const EDITOR = `playground-${crypto.getRandomValues(new Uint32Array(1))[0].toString(16)}`;

let running = null;

function headers() {
  const key = document.getElementById("key").value;
  return { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
}

async function answerOf(response) {
  const told = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(told.error?.message ?? `want 200, got ${response.status}`);
  return told;
}

/** The completion, and how long it took here; a request that is still under way ends. */
export async function complete(body) {
  abort();
  const mine = (running = new AbortController());
  const began = performance.now();
  try {
    const response = await fetch(new URL("v1/autocomplete", ROOT), {
      method: "POST",
      headers: headers(),
      body: JSON.stringify({ ...body, editor_id: EDITOR }),
      signal: mine.signal,
    });
    const told = await answerOf(response);
    return { ...told, took: performance.now() - began };
  } finally {
    if (running === mine) running = null;
  }
}

/** End the request under way; whether there was one. */
export function abort() {
  const was = running !== null;
  running?.abort();
  running = null;
  return was;
}

/** Drafted and accepted tokens by store; null where the server drafts nothing. */
export async function stores() {
  const response = await fetch(new URL("v1/agspec/stats", ROOT), { headers: headers() });
  if (response.status === 404) return null;
  return (await answerOf(response)).workers[0]?.by_source ?? {};
}
