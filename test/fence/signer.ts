/** Keys and sequencers as a cluster makes them, for tests without one. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import type { PublicKey } from "@holdfast/fence";
import { sealSequencer, sequencerToSign } from "@holdfast/wire";

export interface Signer {
  readonly publicKey: PublicKey;
  /** For another process. */
  readonly secret: string;
  seal(resource: string, token: number): string;
  /** As a holder's handle has it. */
  lock(resource: string, token: number): { sequencer(): Promise<string> };
}

export function newSigner(): Signer {
  const { privateKey } = generateKeyPairSync("ed25519");
  return signerOf(privateKey.export({ format: "der", type: "pkcs8" }).toString("base64url"));
}

export function signerOf(secret: string): Signer {
  const privateKey = createPrivateKey({ key: Buffer.from(secret, "base64url"), format: "der", type: "pkcs8" });
  const bytes = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32);
  const id = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const seal = (resource: string, token: number): string => {
    const signed = sequencerToSign(id, claimOf(resource, token));
    return sealSequencer(signed, sign(null, Buffer.from(signed), privateKey));
  };
  return {
    publicKey: { id, publicKey: bytes.toString("base64url") },
    secret,
    seal,
    lock: (resource, token) => ({ sequencer: async () => seal(resource, token) }),
  };
}

function claimOf(resource: string, token: number): Parameters<typeof sequencerToSign>[1] {
  const [, name, slot] = /^(.*)#(\d+)$/s.exec(resource) ?? [];
  if (name === undefined) return { name: resource, mode: "exclusive", slot: null, token };
  return { name, mode: "slot", slot: Number(slot), token };
}
