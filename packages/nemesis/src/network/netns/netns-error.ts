export type NetnsErrorCode =
  /** This machine, or this process, can't have such a network; `missingNetns` says why. */
  | "unavailable"
  | "unknown_party"
  /** Of a way from a party to itself, from or to the harness, or of a shape whose numbers make no sense. */
  | "bad_argument"
  /** The kernel lacks what this shape needs. */
  | "unsupported_shape"
  | "closed";

export class NetnsError extends Error {
  override readonly name = "NetnsError";
  readonly code: NetnsErrorCode;

  constructor(code: NetnsErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
