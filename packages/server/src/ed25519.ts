/** Ed25519 as the keys of sequencers need it: a key out of a seed, signing, verifying. Keys are texts in base64url, as the log carries them. */
import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import type { KeyObject } from "node:crypto";

/** What comes before the seed in a private key (RFC 8410, section 7). */
const seedHeader = Buffer.from("302e020100300506032b657004220420", "hex");
/** Digits of an id. */
const idDigits = 16;

export interface KeyMaterial {
  readonly id: string;
  readonly publicKey: string;
  readonly seed: string;
}

/** `seed`: 32 bytes that nobody can guess. */
export function keyFromSeed(seed: Uint8Array): KeyMaterial {
  const { x } = createPublicKey(privateKeyOf(seed)).export({ format: "jwk" });
  if (x === undefined) throw new Error("an Ed25519 key has an x");
  const id = createHash("sha256").update(Buffer.from(x, "base64url")).digest("hex").slice(0, idDigits);
  return { id, publicKey: x, seed: Buffer.from(seed).toString("base64url") };
}

/** Reading a key costs as much as a signature: the last one of each kind is kept. */
export class Ed25519 {
  private signing: { readonly seed: string; readonly key: KeyObject } | null = null;
  private verifying: { readonly publicKey: string; readonly key: KeyObject } | null = null;

  /** Of an ASCII text. */
  sign(text: string, seed: string): Uint8Array {
    if (this.signing?.seed !== seed) this.signing = { seed, key: privateKeyOf(Buffer.from(seed, "base64url")) };
    return sign(null, Buffer.from(text, "ascii"), this.signing.key);
  }

  verify(text: string, signature: Uint8Array, publicKey: string): boolean {
    if (this.verifying?.publicKey !== publicKey) {
      const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" });
      this.verifying = { publicKey, key };
    }
    return verify(null, Buffer.from(text, "ascii"), this.verifying.key, signature);
  }
}

function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([seedHeader, seed]), format: "der", type: "pkcs8" });
}
