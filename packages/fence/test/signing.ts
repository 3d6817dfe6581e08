/** Keys and sequencers as a cluster makes them. */
import { createHash, generateKeyPairSync, sign } from "node:crypto";

import { sealSequencer, sequencerToSign } from "@holdfast/wire";
import type { SequencerClaim } from "@holdfast/wire";

import type { PublicKey } from "../src/index.js";

export interface Signer {
  readonly publicKey: PublicKey;
  seal(claim: SequencerClaim): string;
}

export const doc42: SequencerClaim = { name: "doc:42", mode: "exclusive", slot: null, token: 4711 };

export function newSigner(): Signer {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const bytes = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  const id = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return {
    publicKey: { id, publicKey: bytes.toString("base64url") },
    seal(claim) {
      const signed = sequencerToSign(id, claim);
      return sealSequencer(signed, sign(null, Buffer.from(signed), privateKey));
    },
  };
}
