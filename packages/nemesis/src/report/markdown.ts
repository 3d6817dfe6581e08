/** Tables of Markdown. */

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [line(head), line(head.map(() => "---")), ...rows.map((row) => line(row.map(cell)))];
}

/** What would end the cell or the line. */
export function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, " ");
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
