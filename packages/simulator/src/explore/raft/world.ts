/** Makes the transitions of single nodes: replays a core, steps it, handles what comes out, and checks what can be checked of one node. */
import type {
  Entry,
  Event,
  LogBase,
  NodeId,
  Output,
  Raft,
  RaftOptions,
  Restored,
  RoleName,
  Term,
} from "@holdfast/raft";
import { canonicalText, coreOf, heardMsOf, isSticky, patienceMs, plainText } from "./canonical.js";
import { baseFor, codec, electionTimeoutMs, fixedRandom, heartbeatMs, limits } from "./codec.js";
import { brokenEarly, brokenPreVote, brokenPromise, codeOf, isWrite, writeTo } from "./local.js";
import type { Disk, LocalAction, LocalState, Look, Pending, Transition } from "./local.js";
import type { Envelope, Network } from "./network.js";
import type { OpenedRaft } from "./opened-core.js";
import type { Scope } from "./scope.js";

const noDisk: Disk = { hardState: { term: 0 as Term, votedFor: null }, entries: [] };

/** A node in the middle of one transition. */
interface Work {
  readonly raft: Raft;
  readonly at: number;
  restored: Disk;
  moves: (Event | null)[];
  nowMs: number;
  disk: Disk;
  pending: Pending[];
  look: Look;
  isHeld: boolean;
  readonly sent: Envelope[];
  readonly applied: Entry[];
  violation: string | null;
  grants: readonly NodeId[];
  leads: number | null;
}

export class World {
  readonly scope: Scope;
  readonly ids: readonly NodeId[];
  readonly #opened: OpenedRaft;
  readonly #network: Network;
  readonly #base: LogBase;
  readonly #constants: ReadonlyMap<unknown, string>;
  readonly #states = new Map<string, LocalState>();
  readonly #logs = new Map<string, readonly Entry[]>();

  constructor(opened: OpenedRaft, network: Network, scope: Scope) {
    this.scope = scope;
    this.ids = network.ids;
    this.#opened = opened;
    this.#network = network;
    this.#base = baseFor(network.ids);
    this.#constants = new Map<unknown, string>([
      [this.#base, "base"],
      [this.#base.configuration, "configuration"],
    ]);
  }

  get stateCount(): number {
    return this.#states.size;
  }

  initial(at: number): LocalState {
    return this.#keep(this.#begin(at, noDisk));
  }

  transition(state: LocalState, action: LocalAction, isJoined: boolean): Transition {
    const code = codeOf(action) * 2 + (isJoined ? 1 : 0);
    let transition = state.transitions.get(code);
    if (transition === undefined) {
      transition = this.#make(state, action, isJoined);
      state.transitions.set(code, transition);
    }
    return transition;
  }

  #make(state: LocalState, action: LocalAction, isJoined: boolean): Transition {
    let work = this.#replay(state);
    try {
      if (action.kind === "crash") {
        this.#persist(work, action.count);
        work = this.#begin(state.at, work.disk);
      } else {
        this.#act(work, state, action);
        work.isHeld = isJoined;
        if (!isJoined) this.#settle(work);
        work.violation ??= brokenPreVote(state, action, work.sent);
      }
    } catch (error) {
      work.violation ??= error instanceof Error ? error.message : String(error);
      return { ...result(work, state), isCut: false };
    }
    const isCut = work.violation === null && this.#isOutOfScope(work);
    return { ...result(work, isCut ? state : this.#keep(work)), isCut };
  }

  #isOutOfScope({ look, pending }: Work): boolean {
    const { termMax, entriesMax, pendingMax } = this.scope;
    return look.status.term > termMax || look.status.last.index > entriesMax || pending.length > pendingMax;
  }

  #act(work: Work, state: LocalState, action: Exclude<LocalAction, { readonly kind: "crash" }>): void {
    if (action.kind === "persist") {
      const number = work.pending[action.count - 1]?.number ?? 0;
      this.#leave(work, this.#persist(work, action.count));
      this.#step(work, { kind: "persisted", nowMs: work.nowMs, number });
      return;
    }
    this.#step(work, this.#eventFor(state, action));
  }

  #eventFor(state: LocalState, action: Exclude<LocalAction, { readonly kind: "crash" | "persist" }>): Event {
    const { nowMs } = state;
    switch (action.kind) {
      case "deliver": {
        const { from, message } = action.envelope;
        const lateMs = action.isLate && state.heardMs !== null ? state.heardMs + electionTimeoutMs : nowMs;
        return { kind: "received", nowMs: Math.max(nowMs, lateMs), from: this.ids[from] as NodeId, message };
      }
      case "electionTimeout":
        return { kind: "tick", nowMs: Math.max(nowMs, state.deadlineMs) };
      case "heartbeatDue":
        return { kind: "tick", nowMs: nowMs + patienceMs };
      case "quorumLost":
        return { kind: "tick", nowMs: nowMs + electionTimeoutMs };
      case "propose": {
        const payload = new Uint8Array([state.at]);
        return { kind: "propose", nowMs, proposal: { id: 1, payload, reserved: false, decidedInTerm: null } };
      }
      case "peerGone":
      case "peerReset":
        return { kind: action.kind, nowMs, peer: this.ids[action.peer] as NodeId };
    }
  }

  #begin(at: number, disk: Disk): Work {
    const work = this.#workOf(at, disk, disk, [], 0);
    this.#step(work, { kind: "tick", nowMs: 0 });
    this.#settle(work);
    return work;
  }

  #replay(state: LocalState): Work {
    const work = this.#workOf(state.at, state.restored, state.disk, [...state.pending], state.nowMs);
    for (const move of state.moves) {
      if (move === null) work.raft.takeOutput();
      else work.raft.step(move);
    }
    work.moves = [...state.moves];
    work.look = { raft: work.raft, status: work.raft.status() };
    work.grants = state.grants;
    return work;
  }

  #workOf(at: number, restored: Disk, disk: Disk, pending: Pending[], nowMs: number): Work {
    const raft = this.#newRaft(at, restored);
    return {
      raft,
      at,
      restored,
      moves: [],
      nowMs,
      disk,
      pending,
      look: { raft, status: raft.status() },
      isHeld: false,
      sent: [],
      applied: [],
      violation: null,
      grants: [],
      leads: null,
    };
  }

  #newRaft(at: number, { hardState, entries }: Disk): Raft {
    const options: RaftOptions = {
      id: this.ids[at] as NodeId,
      electionTimeoutMsMin: electionTimeoutMs,
      heartbeatMs,
      diskStallMs: Number.MAX_SAFE_INTEGER,
      limits,
    };
    const restored: Restored = { hardState, base: this.#base, entries };
    return new this.#opened.Raft(options, { random: fixedRandom, codec }, restored);
  }

  #step(work: Work, event: Event): void {
    work.moves.push(event);
    work.nowMs = event.nowMs;
    const { role, term } = work.look.status;
    work.raft.step(event);
    this.#look(work);
    const { role: roleNow, term: termNow } = work.look.status;
    const isNew = role !== roleNow || term !== termNow;
    if (isNew && roleNow === "leader") work.leads = termNow;
    this.#noteGrants(work, event, role, term);
  }

  /** Pre-votes (thesis 9.6): a term begins only when a quorum has said, of this very term, that it would vote. */
  #noteGrants(work: Work, event: Event, roleBefore: RoleName, term: number): void {
    const { role, term: termNow } = work.look.status;
    if (roleBefore !== "preCandidate" || event.kind === "tick") work.grants = [];
    if (event.kind === "received" && event.message.kind === "preVoteAnswer" && roleBefore === "preCandidate") {
      const { granted, term: asked } = event.message;
      if (granted && asked === term + 1) work.grants = [...new Set([...work.grants, event.from])].sort();
    }
    const count = work.grants.length + 1;
    const hasBegun = role === "candidate" && termNow > term;
    if (hasBegun && 2 * count <= this.ids.length) work.violation ??= `term ${termNow} begins with ${count} pre-votes`;
    if (role !== "preCandidate") work.grants = [];
  }

  #look(work: Work): void {
    work.look = { raft: work.raft, status: this.#opened.checkInvariants(work.look.status, work.raft) };
  }

  /** The end of a turn, and a leader's heartbeats. */
  #settle(work: Work): void {
    this.#takeAll(work);
    if (!this.scope.areHeartbeatsPrompt || work.look.status.role !== "leader") return;
    this.#step(work, { kind: "tick", nowMs: work.nowMs + patienceMs });
    this.#takeAll(work);
  }

  /** Takes what there is to take. A disk that is never late finishes it, and all that comes of that. */
  #takeAll(work: Work): void {
    for (;;) {
      const isDue = work.raft.hasOutput();
      const output = work.raft.takeOutput();
      if (isDue !== (output !== null)) throw new Error("hasOutput says what takeOutput does");
      if (output !== null) {
        work.moves.push(null);
        this.#look(work);
        this.#handle(work, output);
      } else if (!this.scope.isDiskLate && work.pending.length > 0) {
        const number = work.pending[0]?.number ?? 0;
        this.#leave(work, this.#persist(work, 1));
        this.#step(work, { kind: "persisted", nowMs: work.nowMs, number });
      } else {
        return;
      }
    }
  }

  #handle(work: Work, output: Output): void {
    const { number, hardState, truncateFrom, entries, sendAfterPersist } = output;
    const id = this.ids[work.at] as NodeId;
    work.violation ??= brokenEarly(id, output);
    for (const { to, message } of output.send) work.sent.push(this.#network.envelopeFor(work.at, to, message));
    work.applied.push(...output.committed);
    const pending: Pending = { number, hardState, truncateFrom, entries, sendAfterPersist };
    // An output with nothing to write or to send needs not be mentioned to the core again.
    if (isWrite(pending) || sendAfterPersist.length > 0) work.pending.push(pending);
  }

  /** The disk finishes the first outputs, in one batch. */
  #persist(work: Work, count: number): readonly Pending[] {
    const finished = work.pending.splice(0, count);
    for (const output of finished) work.disk = writeTo(work.disk, output, this.#base);
    return finished;
  }

  /** What waited for the disk leaves. */
  #leave(work: Work, finished: readonly Pending[]): void {
    const id = this.ids[work.at] as NodeId;
    for (const { sendAfterPersist } of finished) {
      for (const outbound of sendAfterPersist) {
        work.violation ??= brokenPromise(work.disk, id, outbound);
        work.sent.push(this.#network.envelopeFor(work.at, outbound.to, outbound.message));
      }
    }
  }

  /** The one object that stands for this state of the node. */
  #keep(work: Work): LocalState {
    const { raft, at, disk, pending, isHeld, grants } = work;
    const outputs = pending.map(({ number }) => number);
    const key = `${at}|${isHeld ? "held" : ""}${grants.join()}|${canonicalText(raft, outputs, this.#constants)}|${plainText([disk, pending], outputs, this.#constants)}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      state = this.#stateOf(work, this.#states.size);
      this.#states.set(key, state);
    }
    return state;
  }

  #stateOf(work: Work, number: number): LocalState {
    const { at, restored, moves, nowMs, pending, isHeld, grants, look } = work;
    const disk: Disk = { ...work.disk, entries: this.#logOf(work.disk.entries) };
    const { role, term, leader, commitIndex, last } = look.status;
    const core = coreOf(work.raft);
    const log: Entry[] = [];
    for (let index = 1; index <= last.index; index += 1) {
      const entry = work.raft.entryAt(index as Entry["index"]);
      if (entry !== null) log.push(entry);
    }
    const deadlineMs = work.raft.nextDeadlineMs();
    const shown = {
      role,
      term,
      leader,
      commitIndex,
      log: this.#logOf(log),
      isSticky: isSticky(core),
      heardMs: heardMsOf(core),
      deadlineMs,
    };
    return {
      number,
      at,
      restored,
      moves,
      nowMs,
      disk,
      pending,
      isHeld,
      grants,
      ...shown,
      transitions: new Map(),
      reactions: new Map(),
    };
  }

  /** Equal logs are one object. */
  #logOf(entries: readonly Entry[]): readonly Entry[] {
    const key = plainText(entries, [], this.#constants);
    const log = this.#logs.get(key) ?? entries;
    this.#logs.set(key, log);
    return log;
  }
}

function result(work: Work, next: LocalState): Omit<Transition, "isCut"> {
  const { sent, violation, leads, applied } = work;
  return { next, sent, violation, leads, applied };
}
