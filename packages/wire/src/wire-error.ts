/** Why bytes were refused, or a value that can't be put on the wire. A closed union: callers switch on it. */
export type WireErrorCode =
  /** A length points past the end. */
  | "truncated"
  | "trailing_bytes"
  /** A msgpack extension, record definition or reserved byte. */
  | "extension"
  /** A msgpack map: the wire has arrays only. */
  | "map"
  | "too_deep"
  | "too_many_items"
  /** More bytes, messages or members than limits.ts allows. */
  | "too_large"
  /** Invalid UTF-8, a lone surrogate or a leading byte order mark. */
  | "bad_text"
  | "bad_checksum"
  /** Not an array where one is due, or with too few or (in an entry) too many fields. */
  | "bad_shape"
  /** A field of the wrong type or out of its range: `field` names it. */
  | "bad_value"
  | "unknown_message"
  | "unknown_command"
  /** A format version that this release doesn't know. */
  | "newer_format"
  /** msgpackr refused what the pre-scan let pass: no such case is known. */
  | "undecodable";

/**
 * The only error that the codecs throw for bytes or values from outside. It never carries any of the payload: `field`
 * is a name from our own source (e.g. "names[2]"), `problem` a sentence of our own (e.g. "is empty").
 */
export class WireError extends Error {
  readonly code: WireErrorCode;
  /** Null when the bytes as a whole are refused. */
  readonly field: string | null;
  readonly problem: string;

  constructor(code: WireErrorCode, field: string | null, problem: string) {
    super(field === null ? problem : `${field} ${problem}`);
    this.name = "WireError";
    this.code = code;
    this.field = field;
    this.problem = problem;
  }
}

/**
 * A command of a newer release stands in the log. A node must stop here: to skip the entry would make its state differ.
 */
export class UnknownCommandError extends WireError {
  readonly commandKind: number;
  /** Whose it is, if it is a session's. */
  readonly request: { readonly session: number; readonly request: number } | null;

  constructor(commandKind: number, request: UnknownCommandError["request"]) {
    super("unknown_command", "kind", `${commandKind} is no command that this release knows`);
    this.name = "UnknownCommandError";
    this.commandKind = commandKind;
    this.request = request;
  }
}
