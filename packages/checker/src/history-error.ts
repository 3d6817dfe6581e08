/** A text that is no history. The producer, or the file, is broken: nothing can be judged. */
export class HistoryError extends Error {
  override readonly name: string = "HistoryError";
  /** From 1. */
  readonly line: number;
  /** The way to the field, as in `entry.command.names[0]`; empty: the line as a whole. */
  readonly field: string;
  readonly problem: string;

  constructor(line: number, field: string, problem: string) {
    super(`line ${line}${field === "" ? "" : `, ${field}`}: ${problem}`);
    this.line = line;
    this.field = field;
    this.problem = problem;
  }
}
