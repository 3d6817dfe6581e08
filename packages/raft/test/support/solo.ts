/** One core whose peers are played by the test: every message that it gets is made up, every message that it sends is looked at. */
import assert from "node:assert/strict";
import { checkInvariants, Raft } from "../../src/index.js";
import type {
  Configuration,
  Entry,
  EntryKind,
  HardState,
  Index,
  LogBase,
  Message,
  NodeId,
  Output,
  RaftLimits,
  RaftStatus,
  Term,
} from "../../src/index.js";
import { generousLimits } from "./cluster.js";
import type { TimelessEvent } from "./cluster.js";
import { bytesOf, configurationOf, testCodec } from "./codec.js";
import { SeededRandom } from "./random.js";

export interface SoloOptions {
  readonly id?: NodeId;
  readonly configuration?: Configuration;
  readonly hardState?: { readonly term: number; readonly votedFor: NodeId | null };
  /** "1/1 2/1 3/4": index/term of each entry, all commands. */
  readonly log?: string;
  readonly base?: LogBase;
  readonly entries?: readonly Entry[];
  readonly limits?: Partial<RaftLimits>;
  readonly diskStallMs?: number;
}

type MessageOf<Kind extends Message["kind"]> = Message & { readonly kind: Kind };
export interface Sent<Kind extends Message["kind"] = Message["kind"]> {
  readonly to: NodeId;
  readonly message: MessageOf<Kind>;
  readonly waited: boolean;
}

export const firstBase: LogBase = baseOf(0, 0, 7);

export class Solo {
  readonly raft: Raft;
  nowMs = 1_000;
  /** Outputs that are not reported persisted yet. */
  unpersisted: Output[] = [];
  outputs: Output[] = [];
  sent: Sent[] = [];
  #status: RaftStatus | null = null;

  constructor(options: SoloOptions = {}) {
    const base = options.base ?? {
      ...firstBase,
      configuration: options.configuration ?? configurationOf(["n1", "n2", "n3"]),
    };
    const entries = options.entries ?? entriesOf(options.log ?? "", base.chain);
    const term = options.hardState?.term ?? entries.at(-1)?.term ?? base.position.term;
    const hardState: HardState = { term: term as Term, votedFor: options.hardState?.votedFor ?? null };
    this.raft = new Raft(
      {
        id: options.id ?? "n1",
        electionTimeoutMsMin: 500,
        heartbeatMs: 100,
        diskStallMs: options.diskStallMs ?? 1_000,
        limits: { ...generousLimits, ...options.limits },
      },
      { random: new SeededRandom(3), codec: testCodec },
      { hardState, base, entries },
    );
    this.step({ kind: "tick" });
  }

  /** One event, and all outputs that follow; nothing is reported persisted. */
  step(event: TimelessEvent): this {
    this.raft.step({ ...event, nowMs: this.nowMs });
    this.#status = checkInvariants(this.#status, this.raft);
    this.take();
    return this;
  }

  /** Events of one turn: outputs are taken after the last. */
  stepAll(events: readonly TimelessEvent[]): this {
    for (const event of events) {
      this.raft.step({ ...event, nowMs: this.nowMs });
      this.#status = checkInvariants(this.#status, this.raft);
    }
    this.take();
    return this;
  }

  take(): void {
    for (let output = this.raft.takeOutput(); output !== null; output = this.raft.takeOutput()) {
      this.outputs.push(output);
      this.unpersisted.push(output);
      for (const { to, message } of output.send) this.sent.push({ to, message, waited: false });
      this.#status = checkInvariants(this.#status, this.raft);
    }
  }

  receive(from: NodeId, message: Message): this {
    return this.step({ kind: "received", from, message });
  }

  /** The disk finishes the first `count` outputs. */
  persist(count = this.unpersisted.length): this {
    const finished = this.unpersisted.splice(0, count);
    for (const output of finished) {
      for (const { to, message } of output.sendAfterPersist) this.sent.push({ to, message, waited: true });
    }
    const last = finished.at(-1);
    if (last !== undefined) this.step({ kind: "persisted", number: last.number });
    return this;
  }

  pass(ms: number): this {
    this.nowMs += ms;
    return this.step({ kind: "tick" });
  }

  /** Time passes to the next deadline. */
  toDeadline(): this {
    return this.pass(Math.max(0, this.raft.nextDeadlineMs() - this.nowMs));
  }

  /** Wins an election with the votes of all peers; its first entry is durable and acknowledged by nobody. */
  lead(): this {
    this.toDeadline();
    this.grantAll("preVoteAnswer", this.raft.term + 1).persist();
    this.grantAll("voteAnswer", this.raft.term).persist();
    assert.equal(this.raft.role, "leader");
    return this;
  }

  grantAll(kind: "preVoteAnswer" | "voteAnswer", term: number): this {
    const { voters, outgoing } = this.raft.configuration;
    for (const { id } of [...voters, ...outgoing]) {
      if (id !== this.raft.id && this.raft.role !== "leader")
        this.receive(id, { kind, term: term as Term, granted: true });
    }
    return this;
  }

  accept(from: NodeId, matchIndex: number): this {
    return this.receive(from, { kind: "appendAccepted", term: this.raft.term, matchIndex: matchIndex as Index });
  }

  propose(text: string, id = 1, reserved = false): this {
    const proposal = { id, payload: bytesOf(text), reserved, decidedInTerm: null };
    return this.step({ kind: "propose", proposal });
  }

  /** Takes what was sent since the last call, of one kind. */
  sentOf<Kind extends Message["kind"]>(kind: Kind): Sent<Kind>[] {
    const found = this.sent.filter((each): each is Sent<Kind> => each.message.kind === kind);
    this.sent = this.sent.filter((each) => each.message.kind !== kind);
    return found;
  }

  clear(): this {
    this.sent = [];
    this.outputs = [];
    return this;
  }

  get applied(): number[] {
    return this.outputs.flatMap((output) => output.committed.map((entry) => entry.index));
  }

  positions(): string {
    const positions: string[] = [];
    for (let index = this.raft.logBase.position.index + 1; index <= this.raft.lastIndex; index += 1) {
      positions.push(`${index}/${this.raft.termAt(index as Index)}`);
    }
    return positions.join(" ");
  }
}

export function baseOf(index: number, term: number, chain: number, configuration?: Configuration): LogBase {
  return {
    position: { index: index as Index, term: term as Term },
    chain,
    configuration: configuration ?? configurationOf(["n1", "n2", "n3"]),
  };
}

/** Entries "index/term", chained from `previousChain`; the same text from the same chain value is the same log. */
export function entriesOf(text: string, previousChain = firstBase.chain): Entry[] {
  const entries: Entry[] = [];
  for (const word of text.split(" ").filter((each) => each !== "")) {
    const [index = 0, term = 0] = word.split("/").map(Number);
    entries.push(entryOf(index, term, entries.at(-1)?.chain ?? previousChain));
  }
  return entries;
}

export function entryOf(
  index: number,
  term: number,
  previousChain: number,
  kind: EntryKind = "command",
  payload: Uint8Array = bytesOf(`c${index}`),
): Entry {
  const chain = testCodec.chainFor(previousChain, index as Index, term as Term, kind, payload);
  return { index: index as Index, term: term as Term, kind, payload, chain };
}

/** An append of `entries` onto `before`, the leader's log up to there. */
export function appendOf(
  term: number,
  before: readonly Entry[],
  entries: readonly Entry[],
  commitIndex = 0,
  base: LogBase = firstBase,
): Message & { readonly kind: "append" } {
  const last = before.at(-1);
  return {
    kind: "append",
    term: term as Term,
    previous: last === undefined ? base.position : { index: last.index, term: last.term },
    previousChain: last?.chain ?? base.chain,
    entries,
    commitIndex: commitIndex as Index,
  };
}

export function heartbeatOf(term: number, commitIndex = 0, round = 0): Message {
  return { kind: "heartbeat", term: term as Term, commitIndex: commitIndex as Index, round };
}

export function voteOf(term: number, last: string, transfer = false): Message {
  const [index = 0, lastTerm = 0] = last.split("/").map(Number);
  return { kind: "vote", term: term as Term, last: { index: index as Index, term: lastTerm as Term }, transfer };
}

export function preVoteOf(term: number, last: string): Message {
  const [index = 0, lastTerm = 0] = last.split("/").map(Number);
  return { kind: "preVote", term: term as Term, last: { index: index as Index, term: lastTerm as Term } };
}
