import assert from "node:assert/strict";
import { crc32c, WireError } from "../src/index.js";
import type { WireErrorCode } from "../src/index.js";
import { pack } from "../src/msgpack.js";

/** What the call refuses with; anything else than a WireError fails the test. */
export function refusalOf(run: () => unknown): WireError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof WireError, String(error));
    return error;
  }
  return assert.fail("nothing was thrown");
}

export function codeOf(run: () => unknown): WireErrorCode {
  return refusalOf(run).code;
}

/** A peer frame around any array. */
export function peerBytes(fields: readonly unknown[]): Uint8Array {
  const body = new Uint8Array(pack(fields));
  const bytes = new Uint8Array(4 + body.length);
  new DataView(bytes.buffer).setUint32(0, crc32c(body));
  bytes.set(body, 4);
  return bytes;
}
