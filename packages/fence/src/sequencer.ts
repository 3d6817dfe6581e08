/**
 * Verifies sequencers: that the cluster signed what is presented as a lock's token, so that nobody locks everybody out with a huge one made
 * up. That it was signed says nothing of whether it is still the newest: the guard compares it all the same.
 */
import { createHash, createPublicKey, verify } from "node:crypto";
import type { KeyObject } from "node:crypto";

import { parseSequencer } from "@holdfast/wire";
import type { Sequencer } from "@holdfast/wire";

import { InvalidArgumentError, SequencerError } from "./errors.js";
import { described } from "./fence.js";

/** A key that the cluster signs or signed with, as `GET /v1/keys` and the client's `publicKeys()` give it. */
export interface PublicKey {
  /** The first 8 bytes of the SHA-256 of the public key, as 16 lower-case hex digits. */
  readonly id: string;
  /** Ed25519: 32 bytes, in base64url without padding. */
  readonly publicKey: string;
}

/** What the cluster vouches for. It is a fence, so any guard takes it as `lock`. */
export interface VerifiedSequencer {
  /** The lock's name; for a slot of a semaphore `name#slot`. */
  readonly resource: string;
  /** A safe integer of at least 1. */
  readonly token: number;
  readonly name: string;
  readonly mode: "exclusive" | "shared" | "slot";
  /** From 0 for mode "slot", else null. */
  readonly slot: number | null;
  readonly keyId: string;
}

/**
 * Whether one of these keys signed this text, and what it says. Some 100 us; nobody is asked.
 * @throws SequencerError when it is malformed, of an unknown key, or forged.
 * @throws InvalidArgumentError naming `sequencer` or a part of `publicKeys`.
 */
export function verifySequencer(sequencer: string, publicKeys: readonly PublicKey[]): VerifiedSequencer {
  return keysOf(publicKeys, "publicKeys").verify(readSequencer(sequencer));
}

/** @throws SequencerError("malformed"), InvalidArgumentError. */
export function readSequencer(text: unknown): Sequencer {
  if (typeof text !== "string") {
    throw new InvalidArgumentError("sequencer", `must be a text that lock.sequencer() gave, not ${described(text)}`);
  }
  try {
    return parseSequencer(text);
  } catch (error) {
    throw new SequencerError("malformed", null, error instanceof Error ? error.message : String(error));
  }
}

/** Keys by id. */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, KeyObject>;

  constructor(keys: ReadonlyMap<string, KeyObject>) {
    this.#keys = keys;
  }

  has(id: string): boolean {
    return this.#keys.has(id);
  }

  /** @throws SequencerError */
  verify({ keyId, name, mode, slot, token, signed, signature }: Sequencer): VerifiedSequencer {
    const key = this.#keys.get(keyId);
    if (key === undefined)
      throw new SequencerError("unknown_key", keyId, `sequencer is of the key ${keyId}, which isn't known`);
    if (!verify(null, Buffer.from(signed, "ascii"), key, signature)) {
      throw new SequencerError("forged", keyId, `sequencer was not signed with the key ${keyId}`);
    }
    return { resource: slot === null ? name : `${name}#${slot}`, token, name, mode, slot, keyId };
  }
}

/** @throws InvalidArgumentError naming `argument` or a part of it. */
export function keysOf(publicKeys: readonly PublicKey[], argument: string): KeyRing {
  if (!Array.isArray(publicKeys)) {
    throw new InvalidArgumentError(argument, `must be a list of keys { id, publicKey }, not ${described(publicKeys)}`);
  }
  return new KeyRing(new Map(publicKeys.map((key: unknown, at) => keyOf(key, `${argument}[${at}]`))));
}

function keyOf(key: unknown, argument: string): [string, KeyObject] {
  const { id, publicKey } = (key ?? {}) as { readonly [part in keyof PublicKey]?: unknown };
  const bytes = typeof publicKey === "string" ? Buffer.from(publicKey, "base64url") : Buffer.alloc(0);
  if (bytes.length !== 32 || bytes.toString("base64url") !== publicKey) {
    throw new InvalidArgumentError(`${argument}.publicKey`, "must be 32 bytes in base64url without padding");
  }
  const digits = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  if (id !== digits) throw new InvalidArgumentError(`${argument}.id`, `must be ${digits}, by the public key beside it`);
  return [digits, createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" })];
}
