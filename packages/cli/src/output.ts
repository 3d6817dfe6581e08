/** Plain columns for people. Names and infos come from strangers: nothing in them may steer a terminal. */

/** Aligned columns, two spaces apart; a column of numbers (but for its head) is aligned right. */
export function columns(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const isNumeric = head.map((_, column) => rows.every((row) => /^[\d,.]*$/.test(row[column] ?? "")));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        isNumeric[column] === true ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  return [head, ...rows].map((row) => `${line(row)}\n`).join("");
}

/** "key: value" lines with the values below each other. */
export function facts(pairs: readonly (readonly [string, string])[]): string {
  const width = Math.max(...pairs.map(([key]) => key.length)) + 1;
  return pairs.map(([key, value]) => `${`${key}:`.padEnd(width)} ${value}\n`).join("");
}

/** Control characters, and those that turn text around, as \u escapes; quoted when a reader could mistake where the text ends. */
export function plain(text: string): string {
  const escaped = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) =>
    [...character].map((one) => `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`).join(""),
  );
  return escaped === "" || /^\s|\s$|\s{2}|^-$/.test(escaped) ? `"${escaped}"` : escaped;
}

export function json(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
