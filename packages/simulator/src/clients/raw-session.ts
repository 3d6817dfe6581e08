/**
 * One session spoken by hand, as a client may that keeps to the letter of the protocol and to none of its habits: numbers that arrive out of
 * order, retries of everything at any time, several commands about one acquire. It keeps no lease clock, and so claims no lock: each is told
 * to the history as lost in the moment in which it is acquired.
 */
import type { Command, Mode, Outcome } from "@holdfast/lock";
import type { Grant } from "@holdfast/checker";
import { encodeCommand } from "@holdfast/wire";
import type { Random } from "../random.js";
import type { Scheduler } from "../scheduler.js";
import type { CallBook } from "./call-book.js";
import type { Counts } from "./counts.js";
import type { HistorySink } from "./sink.js";

export interface RawAsked {
  readonly names: readonly string[];
  readonly mode: Mode;
  readonly slots: number;
  readonly wait: boolean;
  readonly lockDelayMs: number;
  readonly maxHoldMs: number;
}

export interface RawSessionParts {
  readonly client: string;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly sink: HistorySink;
  readonly calls: CallBook;
  readonly counts: Counts;
}

/** `gone`: nothing is wanted of it any more; a grant that comes is given back. */
type AcquireStage = "asked" | "held" | "gone" | "over";

export interface RawAcquire {
  readonly request: number;
  readonly call: number;
  stage: AcquireStage;
  grants: readonly Grant[];
}

export interface RawCommand {
  readonly payload: Uint8Array;
  readonly request: number;
  /** That it serves. */
  readonly call: number | null;
  /** Of an ending: which acquire. */
  readonly of: number | null;
  /** The release's own call. */
  readonly release: number | null;
  isAnswered: boolean;
}

type Numbered = "session" | "request" | "settled" | "seen";
type Unnumbered<Each> = Each extends { readonly request: number; readonly session: number }
  ? Omit<Each, Numbered>
  : never;

/** Of which late duplicates may be sent. */
const keptMax = 200;

export class RawSession {
  readonly key: string;
  readonly ttlMs: number;
  readonly opening: Uint8Array;
  /** 0 until it is open. */
  id = 0;
  isOver = false;
  isClosing = false;
  lastKeepalive = 0;
  readonly acquires: Map<number, RawAcquire> = new Map();
  readonly commands: Map<number, RawCommand> = new Map();
  readonly #parts: RawSessionParts;
  readonly #open = new Set<number>();
  #next = 1;

  constructor(ttlMs: number, parts: RawSessionParts) {
    this.ttlMs = ttlMs;
    this.#parts = parts;
    this.key = parts.random.key();
    this.opening = encodeCommand({ kind: "openSession", key: this.key, ttlMs, info: parts.client });
  }

  get unanswered(): readonly RawCommand[] {
    return [...this.commands.values()].filter(({ isAnswered }) => !isAnswered);
  }

  acquiresIn(stage: AcquireStage): readonly RawAcquire[] {
    return [...this.acquires.values()].filter((acquire) => acquire.stage === stage);
  }

  acquire(asked: RawAsked): RawCommand {
    const { names, mode, slots, wait, maxHoldMs } = asked;
    const call = this.#parts.calls.begin({ kind: "acquire", names, mode, slots, wait, maxHoldMs });
    const command = this.#add({ kind: "acquire", ...asked, names: [...names].sort(), info: "raw" }, call, null, null);
    this.acquires.set(command.request, { request: command.request, call, stage: "asked", grants: [] });
    return command;
  }

  release(acquire: RawAcquire, afterMs: number): RawCommand {
    const of = acquire.request;
    const release = acquire.stage === "held" ? this.#parts.calls.begin({ kind: "release", of: acquire.call }) : null;
    if (acquire.stage === "held") acquire.stage = "gone";
    return this.#add({ kind: "release", of, afterMs }, release ?? acquire.call, of, release);
  }

  cancel(acquire: RawAcquire): RawCommand {
    if (acquire.stage === "asked") {
      acquire.stage = "gone";
      this.#parts.calls.end(acquire.call, { kind: "gaveUp" });
    }
    return this.#add({ kind: "cancel", of: acquire.request }, acquire.call, acquire.request, null);
  }

  setInfo(acquire: RawAcquire): RawCommand {
    return this.#add({ kind: "setInfo", of: acquire.request, info: "raw, again" }, null, null, null);
  }

  close(): RawCommand {
    this.isClosing = true;
    return this.#add({ kind: "closeSession" }, null, null, null);
  }

  /** What has to be sent because of it. */
  onOutcome(request: number, outcome: Outcome): RawCommand | null {
    const command = this.commands.get(request);
    if (command !== undefined) command.isAnswered = true;
    const acquire = this.acquires.get(request);
    if (acquire !== undefined) return this.#onAcquire(acquire, outcome);
    if (command === undefined) return null;
    this.#open.delete(request);
    if (command.release !== null) {
      const how = outcome.kind === "released" ? "released" : "alreadyLost";
      this.#parts.calls.end(command.release, { kind: "released", how });
    }
    const of = command.of === null ? undefined : this.acquires.get(command.of);
    if (of === undefined) return null;
    // A cancel that came too late: what it got is given back.
    if (outcome.kind === "alreadyGranted") return of.stage === "gone" ? this.release(of, 0) : null;
    if (outcome.kind === "released" || outcome.kind === "cancelled" || outcome.kind === "notHeld") this.#end(of);
    return null;
  }

  /** The cluster keeps nothing of it any more. */
  onSettled(request: number): void {
    const command = this.commands.get(request);
    if (command === undefined || command.isAnswered) return;
    command.isAnswered = true;
    this.#open.delete(request);
    if (command.release !== null) this.#parts.calls.end(command.release, { kind: "unknown", code: "settled" });
    const acquire = this.acquires.get(request);
    if (acquire !== undefined) this.#end(acquire);
  }

  onEnded(): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const acquire of this.acquires.values()) this.#end(acquire);
    for (const { release } of this.commands.values()) {
      if (release !== null) this.#parts.calls.end(release, { kind: "unknown", code: "session_gone" });
    }
  }

  #onAcquire(acquire: RawAcquire, outcome: Outcome): RawCommand | null {
    const { calls, counts, sink, scheduler } = this.#parts;
    const { call } = acquire;
    switch (outcome.kind) {
      case "waiting":
        return null;
      case "granted": {
        if (acquire.stage === "gone") return this.#isBeingReleased(acquire) ? null : this.release(acquire, 0);
        if (acquire.stage !== "asked") return null;
        acquire.stage = "held";
        acquire.grants = outcome.grants;
        counts.add(outcome.grants.some(({ slot }) => slot !== null) ? "raw: slot granted" : "raw: granted");
        const { grants } = outcome;
        calls.end(call, { kind: "acquired", grants, session: this.id, request: acquire.request });
        sink.emit({ kind: "state", call, state: "lost", reason: "no lease clock", since: scheduler.nowMs });
        return null;
      }
      case "lockHeld":
        calls.end(call, { kind: "refused", code: "lock_held" });
        break;
      case "lockDelayed":
        calls.end(call, { kind: "refused", code: "lock_delayed" });
        break;
      case "slotsDiffer":
        calls.end(call, { kind: "failed", code: "slots_differ" });
        break;
      case "lost":
        counts.add(`raw: lost: ${outcome.reason}`);
        break;
      default:
    }
    this.#end(acquire);
    return null;
  }

  #isBeingReleased({ request }: RawAcquire): boolean {
    for (const command of this.commands.values()) if (command.of === request && !command.isAnswered) return true;
    return false;
  }

  #end(acquire: RawAcquire): void {
    acquire.stage = "over";
    this.#open.delete(acquire.request);
    const own = this.commands.get(acquire.request);
    if (own !== undefined) own.isAnswered = true;
    this.#parts.calls.end(acquire.call, { kind: "unknown", code: "unknown_outcome" });
    // What is unanswered is sent until it isn't.
    for (const [request, command] of this.commands) {
      if (this.commands.size <= keptMax) return;
      if (command.isAnswered && !this.#open.has(request)) this.commands.delete(request);
    }
  }

  #add(command: Unnumbered<Command>, call: number | null, of: number | null, release: number | null): RawCommand {
    const request = this.#next;
    this.#next += 1;
    const { random } = this.#parts;
    const [lowest = request] = this.#open;
    this.#open.add(request);
    // The truth, or less: what is told late, or never.
    const settled = random.chance(0.7) ? lowest : random.between(1, lowest);
    const ended = [...this.commands.keys()].filter((each) => each >= settled && !this.#open.has(each));
    const seen = random.chance(0.3) ? ended.slice(0, 10) : [];
    const numbered = { ...command, session: this.id, request, settled, seen } as Command;
    const raw = { payload: encodeCommand(numbered), request, call, of, release, isAnswered: false };
    this.commands.set(request, raw);
    return raw;
  }
}
