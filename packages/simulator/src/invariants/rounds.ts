/**
 * What a leader may only do after a quorum round that began late enough (rules 15 and 17): confirm a request, answer a client, propose an
 * expiry. Rounds are followed by their messages. It confirms nothing while it hands its leadership over, and renews no session whose silence
 * the log counts, or is about to.
 */
import type { LockMachine, SessionId } from "@holdfast/lock";
import type { Configuration, Event, NodeId, Output, Raft } from "@holdfast/raft";
import { decodeCommand } from "@holdfast/wire";
import { demand } from "./invariant-error.js";
import { isQuorum } from "./quorums.js";
import { Recent } from "./recent.js";

const remembered = 4_096;
const confirmedMax = 64;

interface Confirmed {
  /** When it was asked for, and the index that it vouches for. */
  readonly askedAt: number;
  readonly index: number;
}

/** Who had answered which round when a configuration took the place of this one. */
interface Electorate {
  readonly configuration: Configuration;
  readonly answeredSentAt: ReadonlyMap<NodeId, number>;
}

/** Of one life of a node. Moments are counted in steps of its core. */
export class Rounds {
  readonly #id: NodeId;
  readonly #electionTimeoutMs: number;
  #term = 0;
  #now = 0;
  #nowMs = 0;
  #lastIndex = 0;
  readonly #askedAt = new Recent<number, number>(remembered);
  /** When the first heartbeat of a round left, and of the newest such one that each peer has answered. */
  readonly #sentAt = new Recent<number, number>(remembered);
  readonly #answeredSentAt = new Map<NodeId, number>();
  #configuration: Configuration | null = null;
  /** In force since the last output, and no more: what their quorums had answered by then is confirmed by the next one. */
  #former: Electorate[] = [];
  #confirmed: Confirmed[] = [];
  /** When the last eighths of a session's silence were proposed, and in which entry. */
  readonly #suspected = new Recent<number, { readonly at: number; readonly index: number }>(remembered);
  #isHandingOver = false;
  #handingOverSinceMs: number | null = null;
  /** What was confirmed before the transfer began may still have to come out. */
  #isOutputOld = false;
  /** The term has risen since the last output: what that one confirms is of the term before, and its host leads no more. */
  #isTermNew = false;

  constructor(id: NodeId, electionTimeoutMs: number) {
    this.#id = id;
    this.#electionTimeoutMs = electionTimeoutMs;
  }

  /** For what comes from outside of the core: when it came. */
  get now(): number {
    return this.#now;
  }

  afterStep(raft: Raft, event: Event): void {
    if (raft.term !== this.#term) this.#forget(raft.term);
    this.#now += 1;
    this.#nowMs = event.nowMs;
    this.#noteConfiguration(raft);
    this.#noteTransfer(raft);
    if (event.kind === "confirm") this.#askedAt.set(event.id, this.#now);
    else if (event.kind === "propose" && event.proposal.decidedInTerm !== null) {
      this.#onDecision(raft, event.proposal.payload);
    } else if (event.kind === "received" && event.message.kind === "heartbeatAnswer") {
      const { from, message } = event;
      const sentAt = message.term === raft.term ? (this.#sentAt.get(message.round) ?? 0) : 0;
      this.#answeredSentAt.set(from, Math.max(sentAt, this.#answeredSentAt.get(from) ?? 0));
    }
    this.#lastIndex = raft.lastIndex;
  }

  afterOutput(raft: Raft, { confirmed, send, sendAfterPersist }: Output): void {
    for (const { message } of [...send, ...sendAfterPersist]) {
      if (message.kind !== "heartbeat" || message.term !== this.#term) continue;
      if (!this.#sentAt.has(message.round)) this.#sentAt.set(message.round, this.#now);
    }
    const sinceMs = this.#handingOverSinceMs;
    if (sinceMs !== null && this.#nowMs - sinceMs >= this.#electionTimeoutMs) this.#handingOverSinceMs = null;
    const isSilent = this.#handingOverSinceMs !== null && !this.#isOutputOld;
    this.#isOutputOld = false;
    const isOfFormerTerm = this.#isTermNew;
    this.#isTermNew = false;
    if (isOfFormerTerm) return;
    demand(!isSilent || confirmed.length === 0, "quorum-round", () => {
      return `${this.#id} confirms what it leads in term ${this.#term} while it hands its leadership over`;
    });
    for (const { id, index } of confirmed) this.#checkConfirmed(raft, this.#askedAt.get(id) ?? this.#now, index);
    this.#former = [];
  }

  /** An answer leaves to a question that was read at `readAt`. */
  checkAnswer(what: string, readAt: number, lastApplied: number): void {
    const isGood = this.#confirmed.some(({ askedAt, index }) => askedAt > readAt && index <= lastApplied);
    demand(isGood, "quorum-round", () => {
      return `${this.#id} answers ${what}, and no quorum round that began since it was read is confirmed and applied`;
    });
  }

  checkRenewal(session: SessionId, machine: LockMachine, lastApplied: number): void {
    const silence = machine.sessionView(session)?.silence ?? 0;
    demand(silence === 0, "counted-silence", () => {
      return `${this.#id} renews session ${session}, of whose silence the log counts ${silence} eighths`;
    });
    const { index = 0 } = this.#suspected.get(session) ?? {};
    demand(index <= lastApplied, "counted-silence", () => {
      return `${this.#id} renews session ${session}, whose silence entry ${index} will count; applied is ${lastApplied}`;
    });
  }

  #checkConfirmed(raft: Raft, askedAt: number, index: number): void {
    const now: Electorate = { configuration: raft.configuration, answeredSentAt: this.#answeredSentAt };
    const hasAnswered = [now, ...this.#former].some(({ configuration, answeredSentAt }) => {
      return isQuorum(configuration, (id) => id === this.#id || (answeredSentAt.get(id) ?? 0) >= askedAt);
    });
    demand(hasAnswered, "quorum-round", () => {
      return `${this.#id} confirms what no quorum has answered since it was asked for`;
    });
    const term = raft.termAt(index as never);
    demand(term === null || term === raft.term, "quorum-round", () => {
      return `${this.#id} confirms index ${index} of term ${term}, and has committed nothing of its term ${raft.term}`;
    });
    this.#confirmed = [...this.#confirmed.slice(1 - confirmedMax), { askedAt, index }];
  }

  #noteConfiguration({ configuration }: Raft): void {
    if (configuration === this.#configuration) return;
    if (this.#configuration !== null) {
      this.#former.push({ configuration: this.#configuration, answeredSentAt: new Map(this.#answeredSentAt) });
    }
    this.#configuration = configuration;
  }

  /**
   * From none to one: asked for again while one runs, or while its end waits for a round, none begins. Whoever leaves hands over unasked.
   */
  #noteTransfer(raft: Raft): void {
    const isHandingOver = raft.role === "leader" && raft.status().transferTo !== null;
    if (isHandingOver && !this.#isHandingOver) {
      this.#handingOverSinceMs = this.#nowMs;
      this.#isOutputOld = true;
    }
    this.#isHandingOver = isHandingOver;
  }

  #onDecision(raft: Raft, payload: Uint8Array): void {
    // Refused: nothing stands in the log.
    if (raft.lastIndex === this.#lastIndex) return;
    const command = decodeCommand(payload);
    if (command.kind === "suspectSessions") {
      for (const id of command.ids) this.#suspected.set(id, { at: this.#now, index: raft.lastIndex });
    }
    if (command.kind !== "expireSessions") return;
    for (const id of command.ids) {
      const { at = 0 } = this.#suspected.get(id) ?? {};
      const hasAsked = this.#confirmed.some(({ askedAt }) => askedAt > at);
      demand(hasAsked, "quorum-round", () => {
        return `${this.#id} ends session ${id} in term ${this.#term}, and no quorum round has begun since its time was over`;
      });
    }
  }

  #forget(term: number): void {
    this.#isTermNew = this.#term > 0;
    this.#term = term;
    this.#configuration = null;
    this.#former = [];
    this.#confirmed = [];
    this.#sentAt.clear();
    this.#answeredSentAt.clear();
    this.#suspected.clear();
    this.#isHandingOver = false;
    this.#handingOverSinceMs = null;
  }
}
