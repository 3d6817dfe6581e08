/** Columns for people, coloured at a terminal. Names and infos come from strangers: nothing in them may steer it. */
import { styleText } from "node:util";
import type { Io } from "./io.js";

export type Style = "bold" | "red" | "green" | "yellow";
/** The text in that style, or as it is. */
export type Paint = (style: Style, text: string) => string;

export const unpainted: Paint = (_, text) => text;

export function paintFor({ hasColours }: Pick<Io, "hasColours">): Paint {
  // It is decided already: styleText would look at the stream itself, and at CI in the environment.
  return hasColours ? (style, text) => styleText(style, text, { validateStream: false }) : unpainted;
}

export interface ColumnsPaint {
  readonly paint: Paint;
  /** Of a cell; null for none. */
  readonly styleOf: (row: number, column: number) => Style | null;
}

/** Aligned columns, two spaces apart; a column of numbers (but for its head) is aligned right. */
export function columns(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  { paint, styleOf }: ColumnsPaint = { paint: unpainted, styleOf: () => null },
): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const isNumeric = head.map((_, column) => rows.every((row) => /^[\d,.]*$/.test(row[column] ?? "")));
  const line = (cells: readonly string[], row: number): string =>
    cells
      .map((cell, column) => {
        const space = " ".repeat((widths[column] ?? 0) - cell.length);
        // The space has no style: none would end a line.
        const style = row < 0 ? "bold" : styleOf(row, column);
        const painted = style === null || cell === "" ? cell : paint(style, cell);
        return isNumeric[column] === true ? `${space}${painted}` : `${painted}${space}`;
      })
      .join("  ")
      .trimEnd();
  return [head, ...rows].map((row, at) => `${line(row, at - 1)}\n`).join("");
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
