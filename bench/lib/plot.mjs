/** Plots as SVG text: one row a subject, a dot for the median, a line from the least to the greatest round. */

const width = 860;
const labelWidth = 330;
const valueWidth = 150;
const rowHeight = 24;
const top = 64;
const bottom = 34;

/**
 * @typedef {object} Row
 * @property {string} label
 * @property {import("./statistics.mjs").Summary} summary
 * @property {boolean} ours
 * @property {string} text the value, written out
 */

/**
 * @typedef {object} Plot
 * @property {string} title
 * @property {string} subtitle
 * @property {readonly Row[]} rows
 * @property {number} [reference] a line at this value
 */

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Powers of two and halves between that span the values: ratios are compared on a logarithmic axis. */
function ticksFor(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log2(low)); power <= Math.ceil(Math.log2(high)); power += 1) ticks.push(2 ** power);
  return ticks;
}

/** @param {number} value */
function tickText(value) {
  return value >= 1 ? String(value) : value.toFixed(4).replace(/0+$/, "");
}

/** @param {Plot} plot @returns {string} */
export function svgPlot({ title, subtitle, rows, reference }) {
  const lows = rows.map(({ summary }) => Math.max(summary.low, 1e-3));
  const highs = rows.map(({ summary }) => summary.high);
  const ticks = ticksFor(Math.min(...lows, reference ?? Infinity), Math.max(...highs, reference ?? 0));
  const [first, last] = [Math.log2(ticks[0]), Math.log2(ticks[ticks.length - 1])];
  const plotWidth = width - labelWidth - valueWidth;
  const x = (value) =>
    labelWidth + ((Math.log2(Math.max(value, ticks[0])) - first) / Math.max(last - first, 1)) * plotWidth;
  const height = top + rows.length * rowHeight + bottom;
  const floor = height - bottom;
  const grid = ticks.flatMap((tick) => [
    `<line x1="${x(tick).toFixed(1)}" y1="${top - 8}" x2="${x(tick).toFixed(1)}" y2="${floor}" class="grid"/>`,
    `<text x="${x(tick).toFixed(1)}" y="${floor + 16}" class="tick">${tickText(tick)}</text>`,
  ]);
  const line =
    reference === undefined
      ? []
      : [`<line x1="${x(reference)}" y1="${top - 8}" x2="${x(reference)}" y2="${floor}" class="reference"/>`];
  const marks = rows.flatMap(({ label, summary, ours, text }, index) => {
    const y = top + index * rowHeight + rowHeight / 2;
    const name = ours ? "ours" : "other";
    return [
      `<text x="${labelWidth - 12}" y="${y + 4}" class="label ${name}">${escaped(label)}</text>`,
      `<line x1="${x(summary.low).toFixed(1)}" y1="${y}" x2="${x(summary.high).toFixed(1)}" y2="${y}" class="range ${name}"/>`,
      `<circle cx="${x(summary.median).toFixed(1)}" cy="${y}" r="5" class="dot ${name}"/>`,
      `<text x="${width - valueWidth + 16}" y="${y + 4}" class="value ${name}">${escaped(text)}</text>`,
    ];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">
<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 16px; font-weight: 600; }
  .subtitle, .tick { fill: #57606a; font-size: 12px; }
  .tick { text-anchor: middle; }
  .label { text-anchor: end; }
  .label.ours, .value.ours { font-weight: 600; fill: #0550ae; }
  .grid { stroke: #d8dee4; }
  .reference { stroke: #57606a; stroke-dasharray: 4 3; }
  .range { stroke-width: 2; stroke: #8c959f; }
  .range.ours { stroke: #54a3ff; }
  .dot { fill: #57606a; }
  .dot.ours { fill: #0550ae; }
</style>
<rect width="${width}" height="${height}" rx="6" fill="#ffffff"/>
<text x="20" y="26" class="title">${escaped(title)}</text>
<text x="20" y="44" class="subtitle">${escaped(subtitle)}</text>
${[...grid, ...line, ...marks].join("\n")}
</svg>
`;
}
