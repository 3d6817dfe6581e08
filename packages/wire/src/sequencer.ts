/**
 * A sequencer (Chubby, section 2.4): name, mode, slot and token of a holding in one printable text that the cluster has signed, to be handed on
 * to the resource. `holdfast1.<key id>.<name, base64url>.<mode>.<slot or ->.<token>.<signature, base64url>`
 *
 * Here is the text alone. Who holds a private key signs it, who knows the public keys verifies it; both stand outside of this package.
 */
import type { Mode } from "@holdfast/lock";
import { assert } from "./assert.js";
import { fromBase64url, toBase64url } from "./base64url.js";
import { badValue } from "./fields.js";
import { limits } from "./limits.js";
import { integerProblem, keyProblem, textProblem } from "./problems.js";
import { utf8Problem } from "./utf8.js";

export interface SequencerClaim {
  /** The lock's. */
  readonly name: string;
  readonly mode: Mode;
  /** From 0 for mode "slot", else null. */
  readonly slot: number | null;
  /** The fencing token, from 1. */
  readonly token: number;
}

export interface Sequencer extends SequencerClaim {
  /** Names the key that it was signed with: 16 lower-case hex digits. */
  readonly keyId: string;
  /** What the signature is of, as ASCII. */
  readonly signed: string;
  /** 64 bytes (Ed25519). Nobody has verified it yet. */
  readonly signature: Uint8Array;
}

const version = "holdfast1";
const signatureBytes = 64;
const modes: readonly Mode[] = ["exclusive", "shared", "slot"];
const decimal = /^(?:0|[1-9]\d{0,15})$/;

/** What is to be signed with the key of this id. Throws WireError("bad_value"). */
export function sequencerToSign(keyId: string, claim: SequencerClaim): string {
  const { name, mode, slot, token } = claim;
  const problem = claimProblem(keyId, claim);
  if (problem !== null) throw badValue("sequencer", problem);
  return [version, keyId, toBase64url(utf8Of(name)), mode, slot ?? "-", token].join(".");
}

/** The whole text: what was signed, and the signature of 64 bytes. */
export function sealSequencer(signed: string, signature: Uint8Array): string {
  assert(signature.length === signatureBytes, "an Ed25519 signature has 64 bytes");
  return `${signed}.${toBase64url(signature)}`;
}

/** Reads a sequencer whose signature is still to be verified. One text for each: another is refused. Throws WireError("bad_value"). */
export function parseSequencer(text: unknown): Sequencer {
  if (typeof text !== "string") throw badValue("sequencer", "is no text");
  if (text.length > limits.sequencerBytesMax)
    throw badValue("sequencer", `is longer than ${limits.sequencerBytesMax} characters`);
  const [first, keyId, named, modeWord, place, count, sealed, ...more] = text.split(".");
  if (first !== version) throw badValue("sequencer", `does not begin with ${version}`);
  if (sealed === undefined || more.length > 0) throw badValue("sequencer", "has not seven parts");
  const bytes = fromBase64url(named ?? "");
  const signature = fromBase64url(sealed);
  const mode = modes.find((each) => each === modeWord);
  if (bytes === null || utf8Problem(bytes, 0, bytes.length) !== null) {
    throw badValue("sequencer", "has a name that is no UTF-8 in base64url");
  }
  if (signature?.length !== signatureBytes) throw badValue("sequencer", "has no signature of 64 bytes in base64url");
  if (mode === undefined) throw badValue("sequencer", "has an unknown mode");
  if (!decimal.test(count ?? "") || !(place === "-" || decimal.test(place ?? ""))) {
    throw badValue("sequencer", "has a token or slot that is no plain number");
  }
  const claim = { name: textOf(bytes), mode, slot: place === "-" ? null : Number(place), token: Number(count) };
  const problem = claimProblem(keyId ?? "", claim);
  if (problem !== null) throw badValue("sequencer", problem);
  return { ...claim, keyId: keyId ?? "", signed: text.slice(0, text.length - sealed.length - 1), signature };
}

function claimProblem(keyId: string, { name, mode, slot, token }: SequencerClaim): string | null {
  const key = keyProblem(keyId, limits.signingKeyIdDigits);
  if (key !== null) return `has a key id that ${key}`;
  const text = textProblem(name, 1, limits.nameBytesMax);
  if (text !== null) return `has a name that ${text}`;
  const number = integerProblem(token, 1, Number.MAX_SAFE_INTEGER);
  if (number !== null) return `has a token that ${number}`;
  if (mode === "slot" && slot === null) return "lacks the slot that its mode has";
  if (mode !== "slot" && slot !== null) return "has a slot that its mode has not";
  const place = slot === null ? null : integerProblem(slot, 0, limits.slotsMax - 1);
  return place === null ? null : `has a slot that ${place}`;
}

/** There is no TextEncoder here; the engine's own escapes are UTF-8. The text is well-formed. */
function utf8Of(text: string): Uint8Array {
  const escaped = encodeURIComponent(text);
  const bytes: number[] = [];
  for (let at = 0; at < escaped.length; at++) {
    if (escaped[at] === "%") {
      bytes.push(Number.parseInt(escaped.slice(at + 1, at + 3), 16));
      at += 2;
    } else {
      bytes.push(escaped.charCodeAt(at));
    }
  }
  return Uint8Array.from(bytes);
}

/** The bytes are UTF-8. */
function textOf(bytes: Uint8Array): string {
  return decodeURIComponent(Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""));
}
