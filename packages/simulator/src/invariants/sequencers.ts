/** What clients are told of sequencers and their keys, against what the machines have done. */
import type { PublicKey, SequencerCheck, SequencerClaim } from "@holdfast/client";
import type { Effect } from "@holdfast/lock";
import { demand } from "./invariant-error.js";

const rule = "sequencers";

/** The current key and those former ones that still verify: the machine's own bound, said once more (formerKeysMax). */
const keysMax = 8;

export type Generation = Pick<SequencerClaim, "name" | "slot" | "token">;

/** Generations and keys as the entries have made them, by the first node that has applied each. */
export class SequencerBook {
  /** Those that hold now, by generation. */
  readonly #holders = new Map<string, number>();
  /** The ids of all keys there ever were, the oldest first. */
  readonly #keys: string[] = [];
  #index = 0;

  note(index: number, effects: readonly Effect[]): void {
    if (index <= this.#index) return;
    this.#index = index;
    for (const effect of effects) {
      if (effect.kind === "signingKeySet" && effect.isSet) this.#keys.push(effect.id);
      if (effect.kind !== "changed") continue;
      if (effect.change === "granted") this.#addHolder(effect, 1);
      else if (effect.change === "released" || effect.change === "lost") this.#addHolder(effect, -1);
    }
  }

  isOver(generation: Generation): boolean {
    return !this.#holders.has(keyOf(generation));
  }

  hasKey(id: string): boolean {
    return this.#keys.includes(id);
  }

  /** Replaced so often that what it signed counts no more. */
  isDropped(id: string): boolean {
    return !this.#keys.slice(-keysMax).includes(id);
  }

  get keyCount(): number {
    return this.#keys.length;
  }

  /** As the cluster lists them when there have been so many. */
  keysAfter(count: number): readonly string[] {
    return this.#keys.slice(Math.max(0, count - keysMax), count).reverse();
  }

  #addHolder(generation: Generation, by: 1 | -1): void {
    const key = keyOf(generation);
    const count = (this.#holders.get(key) ?? 0) + by;
    if (count > 0) this.#holders.set(key, count);
    else this.#holders.delete(key);
  }
}

/** A sequencer as its holder got it. */
export interface IssuedSequencer extends Generation {
  readonly keyId: string;
}

/** A question about one. To be made when it is asked: the answer must be true of a moment between then and its coming. */
export class SequencerQuestion {
  readonly #book: SequencerBook;
  readonly #issued: IssuedSequencer;
  readonly #wasOver: boolean;
  readonly #wasDropped: boolean;

  constructor(book: SequencerBook, issued: IssuedSequencer) {
    this.#book = book;
    this.#issued = issued;
    this.#wasOver = book.isOver(issued);
    this.#wasDropped = book.isDropped(issued.keyId);
  }

  /** Of the sequencer as it was issued. */
  judge({ reason, claim, currentToken }: SequencerCheck): void {
    const { name, slot, token, keyId } = this.#issued;
    const said = `the sequencer of ${name}@${token} is said to be ${reason ?? "current"}`;
    demand(reason !== "malformed" && reason !== "forged", rule, () => `${said}, and the cluster signed it`);
    if (reason === "unknown_key") {
      demand(this.#book.isDropped(keyId), rule, () => `${said}, and its key ${keyId} has not dropped out`);
      return;
    }
    demand(!this.#wasDropped, rule, () => `${said}, and its key ${keyId} had dropped out before`);
    const isSame = claim?.name === name && claim.slot === slot && claim.token === token;
    demand(isSame, rule, () => `${said}, and to say ${JSON.stringify(claim)}`);
    if (reason === "over") {
      demand(this.#book.isOver(this.#issued), rule, () => `${said}, and its generation goes on`);
    } else {
      demand(!this.#wasOver, rule, () => `${said}, and its generation was over before that was asked`);
      demand(currentToken === token, rule, () => `${said}, and ${currentToken} to be the current token`);
    }
  }

  /** Of the same with another token in it. */
  judgeForged({ reason }: SequencerCheck): void {
    const isRefused = reason === "forged" || (reason === "unknown_key" && this.#book.isDropped(this.#issued.keyId));
    demand(isRefused, rule, () => `a forged sequencer of ${this.#issued.name} is said to be ${reason ?? "current"}`);
  }
}

/** A question for the public keys, made when it is asked. */
export class KeysQuestion {
  readonly #book: SequencerBook;
  readonly #countBefore: number;

  constructor(book: SequencerBook) {
    this.#book = book;
    this.#countBefore = book.keyCount;
  }

  judge(keys: readonly PublicKey[]): void {
    const told = keys.map(({ id }) => id).join(" ");
    for (let count = this.#countBefore; count <= this.#book.keyCount; count += 1) {
      if (this.#book.keysAfter(count).join(" ") === told) return;
    }
    demand(false, rule, () => {
      return `the public keys are said to be ${told}, and were ${this.#book.keysAfter(this.#countBefore).join(" ")}`;
    });
  }
}

function keyOf({ name, slot, token }: Generation): string {
  return `${token} ${slot} ${name}`;
}
