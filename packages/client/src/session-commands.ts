/** The commands of a session, encoded. The node hands these bytes to the log as they are. */
import type { RequestNumber, SessionRequest } from "@holdfast/lock";
import { encodeCommand } from "@holdfast/wire";
import { assertNever } from "./errors.js";
import type { AcquireRequest } from "./options.js";

/** What speaks of an acquire, or ends the session. */
export type Ending = "release" | "cancel" | "closeSession";

export function encodeAcquire(carried: SessionRequest, asked: AcquireRequest): Uint8Array {
  const { session, request, settled, seen } = carried;
  const { names, mode, slots, wait, lockDelayMs, maxHoldMs, info } = asked;
  return encodeCommand({
    kind: "acquire",
    session,
    request,
    settled,
    seen,
    names,
    mode,
    slots,
    wait,
    lockDelayMs,
    maxHoldMs,
    info,
  });
}

/** `of` is the acquire's number; closeSession has none. */
export function encodeEnding(kind: Ending, carried: SessionRequest, of: RequestNumber, afterMs: number): Uint8Array {
  switch (kind) {
    case "release":
      return encodeCommand({ kind, ...carried, of, afterMs });
    case "cancel":
      return encodeCommand({ kind, ...carried, of });
    case "closeSession":
      return encodeCommand({ kind, ...carried });
    default:
      return assertNever(kind);
  }
}
