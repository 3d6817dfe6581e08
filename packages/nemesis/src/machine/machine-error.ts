export type MachineErrorCode =
  /** This machine can't inject it; `missing` says why. */
  | "unavailable"
  /** A number that makes no sense, faults that exclude one another, or a process that wasn't made ready by `launch`. */
  | "bad_argument";

export class MachineError extends Error {
  override readonly name = "MachineError";
  readonly code: MachineErrorCode;

  constructor(code: MachineErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
