/** Something that had to come did not come within its bound. */
export class StuckError extends Error {
  readonly rule: string;

  constructor(rule: string, message: string) {
    super(message);
    this.name = "StuckError";
    this.rule = rule;
  }
}
