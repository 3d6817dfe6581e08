/**
 * The network of the explored scopes: a message that was sent may arrive at any later time, any number of times, or never. That is every
 * loss, every delay, every reordering and every duplicate at once, and it needs no count of any of them: the set of messages only grows.
 */
import type { Message, NodeId } from "@holdfast/raft";
import { plainText } from "./canonical.js";

/** A message on its way. Equal ones are one object, and have one number. */
export interface Envelope {
  readonly number: number;
  readonly from: number;
  readonly to: number;
  readonly message: Message;
}

/** What may arrive at one node. Equal ones are one object. */
export interface Inbox {
  readonly number: number;
  readonly envelopes: readonly Envelope[];
}

export interface Sent {
  readonly number: number;
  /** One bit for each message, by its number. */
  readonly bits: Uint32Array;
  readonly all: readonly Envelope[];
  /** By receiver. */
  readonly to: readonly Inbox[];
  /** The rule that a message broke when it joined the others. */
  readonly violation: string | null;
}

const noConstants: ReadonlyMap<unknown, string> = new Map();

export class Network {
  readonly ids: readonly NodeId[];
  readonly empty: Sent;
  readonly #envelopes = new Map<string, Envelope>();
  readonly #sets = new Map<string, Sent>();
  readonly #inboxes = new Map<string, Inbox>();
  readonly #unions = new Map<Sent, Map<readonly Envelope[], Sent>>();

  constructor(ids: readonly NodeId[]) {
    this.ids = ids;
    this.empty = this.#setOf([], null);
  }

  get setCount(): number {
    return this.#sets.size;
  }

  get messageCount(): number {
    return this.#envelopes.size;
  }

  envelopeFor(from: number, toId: NodeId, message: Message): Envelope {
    const to = this.ids.indexOf(toId);
    if (to === -1) throw new Error(`a message to ${toId}, which is no node`);
    const key = `${from}>${to} ${plainText(message, [], noConstants)}`;
    let envelope = this.#envelopes.get(key);
    if (envelope === undefined) {
      envelope = { number: this.#envelopes.size, from, to, message };
      this.#envelopes.set(key, envelope);
    }
    return envelope;
  }

  union(sent: Sent, added: readonly Envelope[]): Sent {
    if (added.every(({ number }) => hasBit(sent.bits, number))) return sent;
    let unions = this.#unions.get(sent);
    if (unions === undefined) {
      unions = new Map();
      this.#unions.set(sent, unions);
    }
    // Transitions are made once, so their lists of messages are the same objects again.
    let union = unions.get(added);
    if (union === undefined) {
      const all = [...new Set([...sent.all, ...added])].sort((a, b) => a.number - b.number);
      union = this.#setOf(all, this.#brokenVote(sent, added));
      unions.set(added, union);
    }
    return union;
  }

  #setOf(all: readonly Envelope[], violation: string | null): Sent {
    const key = all.map(({ number }) => number).join();
    let set = this.#sets.get(key);
    if (set === undefined) {
      const to = this.ids.map((_, at) => this.#inboxOf(all.filter((envelope) => envelope.to === at)));
      set = { number: this.#sets.size, bits: bitsOf(all), all, to, violation };
      this.#sets.set(key, set);
    }
    return set;
  }

  #inboxOf(envelopes: readonly Envelope[]): Inbox {
    const key = envelopes.map(({ number }) => number).join();
    let inbox = this.#inboxes.get(key);
    if (inbox === undefined) {
      inbox = { number: this.#inboxes.size, envelopes };
      this.#inboxes.set(key, inbox);
    }
    return inbox;
  }

  /** Over all lives of a node: what it ever said of its vote in a term is one thing. */
  #brokenVote(sent: Sent, added: readonly Envelope[]): string | null {
    for (const one of added) {
      const vote = voteIn(one);
      if (vote === null) continue;
      for (const other of [...sent.all, ...added]) {
        const known = voteIn(other);
        if (other.from !== one.from || known === null || known.term !== vote.term) continue;
        if (known.candidate !== vote.candidate) return `${this.ids[one.from]} votes once in term ${vote.term}`;
      }
    }
    return null;
  }
}

/** Whether all messages of the one were sent in the other. */
export function isSubset(few: Sent, many: Sent): boolean {
  if (few.all.length > many.all.length) return false;
  for (let at = 0; at < few.bits.length; at += 1) {
    if (((few.bits[at] ?? 0) & ~(many.bits[at] ?? 0)) !== 0) return false;
  }
  return true;
}

function hasBit(bits: Uint32Array, number: number): boolean {
  return (((bits[number >>> 5] ?? 0) >>> (number & 31)) & 1) === 1;
}

/** Sorted by number. */
function bitsOf(all: readonly Envelope[]): Uint32Array {
  const bits = new Uint32Array(((all.at(-1)?.number ?? -1) >>> 5) + 1);
  for (const { number } of all) bits[number >>> 5] = (bits[number >>> 5] ?? 0) | (1 << (number & 31));
  return bits;
}

function voteIn({ from, to, message }: Envelope): { readonly term: number; readonly candidate: number } | null {
  if (message.kind === "vote") return { term: message.term, candidate: from };
  if (message.kind === "voteAnswer" && message.granted) return { term: message.term, candidate: to };
  return null;
}
