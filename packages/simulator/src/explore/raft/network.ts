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
  /** One bit for each message, by its number. */
  readonly bits: Uint32Array;
}

/** All that was sent. Equal ones are one object. */
export interface Sent {
  readonly number: number;
  readonly count: number;
  /** By receiver. */
  readonly to: readonly Inbox[];
  readonly votes: Votes;
  /** The rule that a message broke when it joined the others. */
  readonly violation: string | null;
}

/** The requests for votes among what was sent, and the votes given. Equal ones are one object. */
interface Votes {
  readonly number: number;
  readonly envelopes: readonly Envelope[];
}

const noConstants: ReadonlyMap<unknown, string> = new Map();

export class Network {
  readonly ids: readonly NodeId[];
  readonly empty: Sent;
  readonly #envelopes = new Map<string, Envelope>();
  readonly #sets = new Map<string, Sent>();
  readonly #inboxes = new Map<string, Inbox>();
  readonly #votes = new Map<string, Votes>();
  readonly #unions = new Map<Sent, Map<readonly Envelope[], Sent>>();

  constructor(ids: readonly NodeId[]) {
    this.ids = ids;
    const nothing = this.#inboxOf([]);
    this.empty = this.#setOf(
      ids.map(() => nothing),
      null,
    );
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
    if (added.every(({ to, number }) => hasBit(sent.to[to]?.bits, number))) return sent;
    let unions = this.#unions.get(sent);
    if (unions === undefined) {
      unions = new Map();
      this.#unions.set(sent, unions);
    }
    // Transitions are made once, so their lists of messages are the same objects again.
    let union = unions.get(added);
    if (union === undefined) {
      union = this.#unionOf(sent, added);
      unions.set(added, union);
    }
    return union;
  }

  /** All that was sent in either; `sent` itself when that is all. */
  merge(sent: Sent, other: Sent): Sent {
    if (isSubset(other, sent)) return sent;
    const added = other.to.flatMap(({ envelopes }) => envelopes);
    return this.#unionOf(sent, added);
  }

  #unionOf(sent: Sent, added: readonly Envelope[]): Sent {
    const to = sent.to.map((inbox, at) => {
      const news = added.filter((envelope) => envelope.to === at && !hasBit(inbox.bits, envelope.number));
      return news.length === 0 ? inbox : this.#inboxOf([...new Set([...inbox.envelopes, ...news])]);
    });
    return this.#setOf(to, this.#brokenVote(sent, added));
  }

  #setOf(to: readonly Inbox[], violation: string | null): Sent {
    const key = to.map(({ number }) => number).join();
    let set = this.#sets.get(key);
    if (set === undefined) {
      const count = to.reduce((sum, { envelopes }) => sum + envelopes.length, 0);
      set = { number: this.#sets.size, count, to, votes: this.#votesIn(to), violation };
      this.#sets.set(key, set);
    }
    return set;
  }

  #inboxOf(unsorted: readonly Envelope[]): Inbox {
    const envelopes = unsorted.toSorted((a, b) => a.number - b.number);
    const key = envelopes.map(({ number }) => number).join();
    let inbox = this.#inboxes.get(key);
    if (inbox === undefined) {
      inbox = { number: this.#inboxes.size, envelopes, bits: bitsOf(envelopes) };
      this.#inboxes.set(key, inbox);
    }
    return inbox;
  }

  #votesIn(to: readonly Inbox[]): Votes {
    const envelopes = to.flatMap((inbox) => inbox.envelopes.filter((envelope) => voteIn(envelope) !== null));
    const key = envelopes.map(({ number }) => number).join();
    let votes = this.#votes.get(key);
    if (votes === undefined) {
      votes = { number: this.#votes.size, envelopes };
      this.#votes.set(key, votes);
    }
    return votes;
  }

  /** Over all lives of a node: what it ever said of its vote in a term is one thing. */
  #brokenVote(sent: Sent, added: readonly Envelope[]): string | null {
    for (const one of added) {
      const vote = voteIn(one);
      if (vote === null) continue;
      for (const other of [...sent.votes.envelopes, ...added]) {
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
  return few === many || few.to.every((inbox, at) => isWithin(inbox, many.to[at]));
}

function isWithin(few: Inbox, many: Inbox | undefined): boolean {
  if (many === undefined || few.envelopes.length > many.envelopes.length) return false;
  if (few === many) return true;
  for (let at = 0; at < few.bits.length; at += 1) {
    if (((few.bits[at] ?? 0) & ~(many.bits[at] ?? 0)) !== 0) return false;
  }
  return true;
}

function hasBit(bits: Uint32Array | undefined, number: number): boolean {
  return (((bits?.[number >>> 5] ?? 0) >>> (number & 31)) & 1) === 1;
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
