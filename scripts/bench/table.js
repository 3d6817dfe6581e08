/** Results as text for people. */

/** @typedef {import("./results.js").Result} Result */

/**
 * A title, a line of column titles and a line for each row. In parentheses: how many times better the first row is.
 * @param {Result} result
 */
export function tableOf({ title, columns, rows }) {
  const keys = Object.keys(columns);
  const lines = [
    ["", ...keys.map((key) => columns[key].title)],
    ...Object.values(rows).map((row) => [row.title, ...keys.map((key) => cellOf(row.figures[key], columns[key]))]),
  ];
  const widths = lines[0].map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  const texts = lines.map((line) =>
    line
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at])))
      .join("  ")
      .trimEnd(),
  );
  return `${title}\n${texts.join("\n")}\n`;
}

/**
 * @param {import("./results.js").Figure | undefined} figure
 * @param {import("./results.js").Column} column
 */
function cellOf(figure, { digits }) {
  if (figure === undefined) return "-";
  const text = numberText(figure.median, digits);
  return figure.ratio === null ? text : `${text} (${ratioText(figure.ratio)}x)`;
}

/**
 * With commas between thousands.
 * @param {number} value
 * @param {number} digits After the point.
 */
export function numberText(value, digits) {
  if (!Number.isFinite(value)) return "?";
  const [whole = "", fraction] = value.toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/**
 * Two digits that mean something.
 * @param {number} ratio
 */
function ratioText(ratio) {
  return numberText(ratio, ratio >= 10 ? 0 : ratio >= 1 ? 1 : 2);
}
