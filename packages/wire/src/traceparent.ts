/** Where a request belongs in its caller's trace, as W3C Trace Context writes it: version, trace, span and flags, in hex digits. */

const pattern = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** What isn't one is passed over, wherever it stands: a broken tracer costs its trace, and no request. */
export function isTraceparent(value: unknown): value is string {
  return typeof value === "string" && value.length === 55 && pattern.test(value);
}
