/**
 * The cluster's key for sequencers, at its leader: made when there is none and the cluster's version knows of keys, replaced when an
 * administrator asks for it. The key is in the replicated state, so that any later leader signs with the same.
 */
import { commandVersions } from "@holdfast/lock";
import type { Command, HoldingView, LockMachine, Token } from "@holdfast/lock";
import { parseSequencer, sealSequencer, sequencerToSign, WireError } from "@holdfast/wire";
import type { Sequencer, SequencerVerdict } from "@holdfast/wire";
import { Ed25519, keyFromSeed } from "./ed25519.js";

type Machine = Pick<LockMachine, "clusterVersion" | "signingKey" | "publicKeys" | "tokenAt">;

export interface SigningKeysParts {
  machine(): Machine;
  /** 32 bytes that nobody can guess. */
  drawSeed(): Uint8Array;
  /** In this term or not at all. */
  propose(command: Command, onRefused: () => void): void;
}

export class SigningKeys {
  private readonly parts: SigningKeysParts;
  private readonly ed25519: Ed25519 = new Ed25519();
  private isBeginning = false;

  constructor(parts: SigningKeysParts) {
    this.parts = parts;
  }

  /** At a leader that serves: the first key. */
  maybeBegin(): void {
    const { clusterVersion, signingKey } = this.parts.machine();
    if (this.isBeginning || signingKey !== null || clusterVersion < commandVersions.setSigningKey) return;
    this.isBeginning = true;
    this.parts.propose(this.newKey(""), () => this.onLeadershipLost());
  }

  onLeadershipLost(): void {
    this.isBeginning = false;
  }

  /** A new key in the place of the one that there is. */
  newKey(principal: string): Extract<Command, { readonly kind: "setSigningKey" }> {
    const replaces = this.parts.machine().signingKey?.id ?? null;
    return { kind: "setSigningKey", ...keyFromSeed(this.parts.drawSeed()), replaces, principal };
  }

  /** Some 33 us. Null: there is no key. */
  sign(holding: HoldingView): string | null {
    const { signingKey } = this.parts.machine();
    if (signingKey === null) return null;
    const signed = sequencerToSign(signingKey.id, holding);
    return sealSequencer(signed, this.ed25519.sign(signed, signingKey.seed));
  }

  /** As of what is applied. `token`: of who holds the same now. */
  check(text: string): { readonly verdict: SequencerVerdict; readonly token: Token | null } {
    const machine = this.parts.machine();
    const sequencer = readSequencer(text);
    if (sequencer === null) return { verdict: "malformed", token: null };
    const { keyId, signed, signature } = sequencer;
    const key = machine.publicKeys().find(({ id }) => id === keyId);
    if (key === undefined) return { verdict: "unknown_key", token: null };
    if (!this.ed25519.verify(signed, signature, key.publicKey)) return { verdict: "forged", token: null };
    const token = machine.tokenAt(sequencer.name, sequencer.slot);
    return { verdict: token === sequencer.token ? "current" : "over", token };
  }
}

function readSequencer(text: string): Sequencer | null {
  try {
    return parseSequencer(text);
  } catch (error) {
    if (error instanceof WireError) return null;
    throw error;
  }
}
