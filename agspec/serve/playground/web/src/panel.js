// The figures beside the editor.
const KEPT = 200; // latencies of which p50 and p95 are shown

const rows = { total: "to the answer, here", first: "to the first text, server", prepare: "prompt and window" };
const latencies = { total: [], first: [], prepare: [] };

export const counts = { requested: 0, cancelled: 0, shown: 0, accepted: 0, "not taken": 0, failed: 0 };

export function noteLatency(found) {
  for (const [name, value] of Object.entries(found)) {
    latencies[name].push(value);
    if (latencies[name].length > KEPT) latencies[name].shift();
  }
  showLatency();
}

export function count(name) {
  counts[name] += 1;
  showCounts();
}

export function say(text) {
  document.getElementById("message").textContent = text;
}

export function showStores(now, before) {
  const told = Object.keys(now).map((store) => {
    const old = before[store] ?? { num_accepted_tokens: 0, num_draft_tokens: 0 };
    return [
      store,
      now[store].num_accepted_tokens - old.num_accepted_tokens,
      now[store].num_draft_tokens - old.num_draft_tokens,
    ];
  });
  fill("stores", told.length ? told : [["none yet", "", ""]]);
}

export function showLatency() {
  fill("latency", Object.entries(rows).map(([name, title]) => {
    const values = latencies[name];
    return [title, ms(values.at(-1)), ms(quantile(values, 0.5)), ms(quantile(values, 0.95))];
  }));
}

export function showCounts() {
  fill("counts", Object.entries(counts));
}

export function fill(id, table) {
  const body = document.getElementById(id);
  body.replaceChildren(...table.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map((cell) => Object.assign(document.createElement("td"), { textContent: cell })));
    row.dataset.name = cells[0];
    return row;
  }));
}

function ms(value) {
  return value === undefined ? "-" : value.toFixed(value < 10 ? 1 : 0);
}

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}
