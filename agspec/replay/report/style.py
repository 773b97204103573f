"""The page's style sheet. Colours are told apart by lightness as well as hue, and never say anything alone."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --track: #eceff2; --warn: #9a3412;
  --ours: #0b5cad; --base: #7a838d;
  --store0: #0b4f94; --store0-ink: #ffffff; --store1: #f0a830; --store1-ink: #1b1f24;
  --store2: #3d9a80; --store2-ink: #10151a; --store3: #8e3a73; --store3-ink: #ffffff;
  --store4: #a9b1ba; --store4-ink: #1b1f24;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161b; --ink: #e8ebee; --soft: #a9b2bc; --line: #3a424c; --track: #232a32; --warn: #ffab7a;
    --ours: #62aef7; --base: #87919c;
    --store0: #62aef7; --store0-ink: #0b1016; --store1: #f5bd57; --store1-ink: #0b1016;
    --store2: #25785f; --store2-ink: #ffffff; --store3: #d48abb; --store3-ink: #0b1016;
    --store4: #6b7580; --store4-ink: #ffffff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 24px 16px 64px; max-width: 960px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 8px; }
h2 { font-size: 20px; line-height: 1.3; margin: 40px 0 4px; }
h3 { font-size: 16px; margin: 0; }
h4 { font-size: 14px; margin: 0 0 4px; font-weight: 600; }
p { margin: 4px 0 8px; }
.note, summary, .legend { color: var(--soft); font-size: 14px; }
.warn { color: var(--warn); font-weight: 600; }
figure { margin: 24px 0 0; padding: 16px 0 0; border-top: 1px solid var(--line); }
figcaption { margin-bottom: 12px; max-width: 72ch; }
.panels { display: grid; align-items: end; gap: 20px 40px;
  grid-template-columns: repeat(auto-fit, minmax(min(280px, 100%), 1fr)); }
.square { max-width: 440px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 0 0 8px; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: 6px; }
.legend svg { flex: none; }
svg { display: block; }
svg text { font-size: 13px; fill: var(--ink); }
.value { text-anchor: end; font-weight: 600; font-variant-numeric: tabular-nums; }
.tick { font-size: 11px; fill: var(--soft); }
.start { text-anchor: start; } .end { text-anchor: end; }
.middle, .on { text-anchor: middle; }
svg .on { font-size: 12px; font-weight: 600; pointer-events: none; }
.track { fill: var(--track); }
.grid { stroke: var(--line); }
.gap { stroke: var(--page); stroke-width: 2; }
.mark { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 3 2; }
.halo { stroke: var(--page); stroke-width: 4; }
.whisker { stroke: var(--ink); stroke-width: 1.5; }
circle { fill-opacity: 0.85; }
.ours { fill: var(--ours); } .base { fill: var(--base); }
.store0 { fill: var(--store0); } .store1 { fill: var(--store1); } .store2 { fill: var(--store2); }
.store3 { fill: var(--store3); } .store4 { fill: var(--store4); }
svg .store0-ink { fill: var(--store0-ink); } svg .store1-ink { fill: var(--store1-ink); }
svg .store2-ink { fill: var(--store2-ink); } svg .store3-ink { fill: var(--store3-ink); }
svg .store4-ink { fill: var(--store4-ink); }
details { margin-top: 8px; }
summary { cursor: pointer; padding: 4px 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: 4px 0 8px; overflow-wrap: normal; }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
  font-variant-numeric: tabular-nums; }
th { font-weight: 600; }
td { white-space: nowrap; }
.text, .facts th, .facts td { text-align: left; }
.facts th { font-weight: 400; color: var(--soft); white-space: nowrap; }
.facts td { overflow-wrap: anywhere; white-space: normal; }
@media print { body { max-width: none; } figure { break-inside: avoid; } }
""".strip()
