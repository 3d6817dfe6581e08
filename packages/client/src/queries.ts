/**
 * Questions and orders to the leader that belong to no session: reads, forced releases, transfers of leadership, ends of upgrades, new keys,
 * changes of members.
 */
import type { Token } from "@holdfast/lock";
import type {
  ChangeRefusalReason,
  ClientMessage,
  MembersView,
  NodeAddress,
  Query,
  QueryResult,
  Refusal,
  ServerMessage,
} from "@holdfast/wire";
import { Backoff } from "./backoff.js";
import { assertNever, connectionClosed, errorFor, HoldfastError } from "./errors.js";
import type { Clock, Random, Timer } from "./ports.js";
import type { ProcessHold } from "./process-hold.js";
import type { LeaderLink } from "./leader-link.js";

/** Of a node's welcome: it knows the questions about sequencers. A node that doesn't would close the connection. */
const sequencersFeature = "sequencers";
const retryOptions = { firstMs: 50, maxMs: 1_000 };

export interface ForcedRelease {
  /** How many holds it ended: 0 when that token's generation was over. */
  readonly ended: number;
  /** How many hold the lock under another token. */
  readonly holders: number;
}

export type QueryAnswer = Extract<
  ServerMessage,
  { readonly kind: "answer" | "forced" | "transferred" | "finalized" | "keyRotated" | "membersChanged" }
>;

type Question = Extract<
  ClientMessage,
  { readonly kind: "query" | "forceRelease" | "transfer" | "finalize" | "rotateKey" | "changeMembers" }
>;

export type MembersChange = Omit<Extract<ClientMessage, { readonly kind: "changeMembers" }>, "kind" | "id">;

interface Pending {
  /** Without its id: every sending has a fresh one, so that an answer to an earlier sending is never taken for this one's. */
  readonly question: Question;
  /** Null while it is not sent to the present leader. */
  id: number | null;
  readonly resolve: (answer: QueryAnswer) => void;
  readonly reject: (error: HoldfastError) => void;
  timer: Timer | null;
  retryTimer: Timer | null;
  readonly backoff: Backoff;
}

export interface QueriesParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly link: LeaderLink;
  readonly hold: ProcessHold;
  /** A number that nothing else of this client has. */
  readonly nextId: () => number;
}

export class Queries {
  private readonly parts: QueriesParts;
  private readonly timeoutMs: number;
  /** Why nobody answered in time. */
  private readonly onTimeout: () => HoldfastError;
  private readonly pending = new Set<Pending>();

  constructor(options: { timeoutMs: number; onTimeout: () => HoldfastError }, parts: QueriesParts) {
    this.timeoutMs = options.timeoutMs;
    this.onTimeout = options.onTimeout;
    this.parts = parts;
  }

  /** Linearizable; asked again, at another leader if need be, until it is answered. */
  async ask<Kind extends QueryResult["kind"]>(
    query: Query,
    kind: Kind,
  ): Promise<Extract<QueryResult, { readonly kind: Kind }>> {
    const answer = await this.send({ kind: "query", id: 0, query });
    if (answer.kind === "answer" && isOfKind(answer.result, kind)) return answer.result;
    throw new HoldfastError("incompatible", `the answer to ${query.kind} is of another kind`);
  }

  async forceRelease(name: string, token: Token, principal: string, lockDelayMs: number): Promise<ForcedRelease> {
    const answer = await this.send({ kind: "forceRelease", id: 0, name, token, principal, lockDelayMs });
    if (answer.kind === "forced") return { ended: answer.ended, holders: answer.holders };
    throw new HoldfastError("incompatible", "the answer to forceRelease is of another kind");
  }

  async transfer(to: string | null): Promise<NodeAddress | null> {
    const answer = await this.send({ kind: "transfer", id: 0, to });
    if (answer.kind === "transferred") return answer.leader;
    throw new HoldfastError("incompatible", "the answer to transfer is of another kind");
  }

  async finalize(): Promise<number> {
    const answer = await this.send({ kind: "finalize", id: 0 });
    if (answer.kind === "finalized") return answer.version;
    throw new HoldfastError("incompatible", "the answer to finalize is of another kind");
  }

  async rotateKey(principal: string): Promise<string> {
    const answer = await this.send({ kind: "rotateKey", id: 0, principal });
    if (answer.kind === "keyRotated") return answer.key;
    throw new HoldfastError("incompatible", "the answer to rotateKey is of another kind");
  }

  async members(): Promise<MembersView> {
    const { members } = await this.ask({ kind: "members" }, "members");
    return members;
  }

  async changeMembers(change: MembersChange): Promise<number> {
    const answer = await this.send({ kind: "changeMembers", id: 0, ...change });
    if (answer.kind === "membersChanged") return answer.index;
    throw new HoldfastError("incompatible", "the answer to changeMembers is of another kind");
  }

  /** A leader is found: a read that the last one left unanswered is asked again. Whether an order took effect there is not known. */
  onLeader(leader: NodeAddress | null): void {
    const pending = [...this.pending];
    for (const one of pending) {
      const { question, id } = one;
      if (id === null || isRepeatable(question)) this.sendNow(one);
      else if (question.kind === "transfer" && leader !== null && (question.to ?? leader.id) === leader.id) {
        this.end(one)?.resolve({ kind: "transferred", id, leader });
      } else {
        this.end(one)?.reject(errorFor({ code: "unknown_outcome" }));
      }
    }
  }

  onAnswer(answer: QueryAnswer): void {
    for (const one of this.pending) {
      if (one.id !== answer.id) continue;
      this.end(one)?.resolve(answer);
      return;
    }
  }

  onRefused(id: number, refusal: Refusal): void {
    for (const one of this.pending) {
      if (one.id !== id) continue;
      this.onQuestionRefused(one, refusal);
      return;
    }
  }

  fail(error: HoldfastError): void {
    const pending = [...this.pending];
    for (const one of pending) this.end(one)?.reject(error);
  }

  close(): void {
    this.fail(connectionClosed());
  }

  private send(question: Question): Promise<QueryAnswer> {
    return new Promise((resolve, reject) => {
      const { clock, hold, random } = this.parts;
      const backoff = new Backoff(retryOptions, random);
      const one: Pending = { question, id: null, resolve, reject, timer: null, retryTimer: null, backoff };
      one.timer = clock.setTimer(this.timeoutMs, () => this.end(one)?.reject(this.onTimeout()));
      this.pending.add(one);
      hold.begin();
      this.sendNow(one);
    });
  }

  private sendNow(one: Pending): void {
    one.retryTimer?.cancel();
    one.retryTimer = null;
    one.id = null;
    const { link, nextId } = this.parts;
    if (!link.isReady) return;
    if (isOfSequencers(one.question) && !link.hasFeature(sequencersFeature)) {
      this.end(one)?.reject(new HoldfastError("incompatible", "the leader's release knows no sequencers"));
      return;
    }
    one.id = nextId();
    link.send({ ...one.question, id: one.id });
  }

  private onQuestionRefused(one: Pending, refusal: Refusal): void {
    switch (refusal.code) {
      case "not_leader":
        one.id = null;
        this.parts.link.onNotLeader(refusal.leader);
        return;
      case "unknown_outcome":
        if (!isRepeatable(one.question)) this.end(one)?.reject(errorFor(refusal));
        else this.retryLater(one);
        return;
      case "no_quorum":
      case "overloaded":
        this.retryLater(one);
        return;
      case "change_refused":
        if (passes(refusal.reason)) this.retryLater(one);
        else this.end(one)?.reject(errorFor(refusal));
        return;
      case "session_gone":
      case "invalid_argument":
      case "incompatible":
      case "unauthorized":
        this.end(one)?.reject(errorFor(refusal));
        return;
      default:
        assertNever(refusal);
    }
  }

  private retryLater(one: Pending): void {
    one.id = null;
    one.retryTimer?.cancel();
    one.retryTimer = this.parts.clock.setTimer(one.backoff.nextMs(), () => this.sendNow(one));
  }

  /** Null: it has ended already. */
  private end(one: Pending): Pending | null {
    if (!this.pending.delete(one)) return null;
    one.timer?.cancel();
    one.retryTimer?.cancel();
    this.parts.hold.end();
    return one;
  }
}

/** A version that was reached is reached whoever asks again; other orders may take effect twice. */
function isRepeatable({ kind }: Question): boolean {
  return kind === "query" || kind === "finalize";
}

function isOfSequencers(question: Question): boolean {
  if (question.kind !== "query") return question.kind === "rotateKey";
  const { kind } = question.query;
  return kind === "sequencer" || kind === "check" || kind === "keys";
}

/** By itself, and within moments. */
function passes(reason: ChangeRefusalReason): boolean {
  return reason === "not_ready" || reason === "transfer_running";
}

function isOfKind<Kind extends QueryResult["kind"]>(
  result: QueryResult,
  kind: Kind,
): result is Extract<QueryResult, { readonly kind: Kind }> {
  return result.kind === kind;
}
