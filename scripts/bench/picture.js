/** Cycles a second as an SVG picture: a group of bars for each number of clients. */
import { numberText } from "./table.js";

const width = 760;
const labelWidth = 250;
const figureWidth = 120;
const barHeight = 18;
const barGap = 4;
const titleHeight = 34;
const ours = "#1f6feb";
const others = "#9aa4b2";

/**
 * Every group has a scale of its own: 256 clients would make those of one invisible.
 * @param {import("./results.js").Result} result Of the part cycles: its columns `clientsN` are drawn.
 */
export function pictureOf({ title, columns, rows }) {
  const keys = Object.keys(columns).filter((key) => key.startsWith("clients"));
  const entries = Object.values(rows).filter(({ figures }) => keys.some((key) => key in figures));
  const groupHeight = titleHeight + entries.length * (barHeight + barGap);
  const height = titleHeight + keys.length * groupHeight;
  const groups = keys.map((key, at) => groupOf(key, columns[key].title, entries, titleHeight + at * groupHeight));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="10" y="22" font-size="16" font-weight="bold">${escaped(title)}</text>`,
    ...groups,
    "</svg>",
    "",
  ].join("\n");
}

/**
 * @param {string} key
 * @param {string} title
 * @param {readonly import("./results.js").Row[]} rows
 * @param {number} top
 */
function groupOf(key, title, rows, top) {
  const most = Math.max(...rows.map(({ figures }) => figures[key]?.median ?? 0));
  const bars = rows.map((row, at) => {
    const value = row.figures[key]?.median ?? 0;
    const y = top + titleHeight + at * (barHeight + barGap);
    const length = most === 0 ? 0 : Math.round((value / most) * (width - labelWidth - figureWidth));
    return [
      `<text x="${labelWidth - 8}" y="${y + 14}" text-anchor="end">${escaped(row.title)}</text>`,
      `<rect x="${labelWidth}" y="${y}" width="${length}" height="${barHeight}" fill="${at === 0 ? ours : others}"/>`,
      `<text x="${labelWidth + length + 6}" y="${y + 14}">${numberText(value, 0)}</text>`,
    ].join("\n");
  });
  return [`<text x="10" y="${top + 24}" font-weight="bold">${escaped(title)}</text>`, ...bars].join("\n");
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
