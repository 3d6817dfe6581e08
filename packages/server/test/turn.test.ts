/** What a turn leaves to the next one, and what it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Index, Output, Raft } from "@holdfast/raft";
import type { ClientMessage } from "@holdfast/wire";
import type { Applier } from "../src/applier.js";
import type { ClientGateway } from "../src/client-gateway.js";
import { ConfirmedAnswers } from "../src/confirmed-answers.js";
import type { LeaseKeeper } from "../src/lease-keeper.js";
import type { ClientConnection } from "../src/ports.js";
import { QuorumRounds } from "../src/quorum-rounds.js";
import { Turn } from "../src/turn.js";
import type { TurnParts } from "../src/turn.js";
import { TurnQueue } from "../src/turn-queue.js";

const keepalive: ClientMessage = { kind: "keepalive", session: 1, number: 1 };
const output: Partial<Output> = {
  send: [],
  chunk: null,
  refused: [],
  roleChanges: [],
  confirmed: [],
  unconfirmed: [],
  install: null,
  configuration: null,
  committed: [],
  snapshotReads: [],
  isRemoved: false,
};

/** A turn of a node that serves, whose every message of a client and every apply takes some time. */
class Bench {
  nowMs = 1_000;
  readonly queue = new TurnQueue();
  readonly told: string[] = [];
  outputs: Partial<Output>[] = [];
  readonly turn: Turn;
  private beganMs = 0;

  constructor(times: { messageMs: number; applyMs: number }) {
    const rounds = new QuorumRounds();
    const nothing = {
      settle() {},
      advance() {},
      noteApplied() {},
      maybeBegin() {},
      send() {},
      enqueue() {},
      noteOutput() {},
    };
    const raft: Partial<Raft> = {
      nextDeadlineMs: () => Number.POSITIVE_INFINITY,
      step() {},
      hasOutput: () => this.outputs.length > 0,
      takeOutput: () => (this.outputs.shift() as Output | undefined) ?? null,
    };
    const keeper: Partial<LeaseKeeper> = {
      nextDeadlineMs: () => Number.POSITIVE_INFINITY,
      decide: (atMs) => this.told.push(`decided as of ${atMs}`),
      flush: () => this.told.push("flushed"),
    };
    const applier: Partial<Applier> = {
      hasBacklog: false,
      lastApplied: 0 as Index,
      push() {},
      apply: () => {
        this.nowMs += times.applyMs;
        this.told.push("applied");
        return { entries: 0, bytes: 0 };
      },
    };
    const handle: ClientGateway["handle"] = ({ messages }) => {
      this.nowMs += messages.length * times.messageMs;
    };
    const parts: Partial<Record<keyof TurnParts, unknown>> = {
      loop: this.loop(),
      queue: this.queue,
      raft,
      applier,
      keeper,
      rounds,
      answers: new ConfirmedAnswers(rounds),
      gateway: { handle, intake: { resume() {} }, releaseEarly() {} },
      leadership: { isServing: true, isLeader: true },
      snapshots: nothing,
      transfers: nothing,
      versions: nothing,
      signingKeys: nothing,
      membership: nothing,
      peers: nothing,
      persister: nothing,
      proposals: nothing,
    };
    this.turn = new Turn(parts as unknown as TurnParts);
  }

  run(isTimerDue: boolean): void {
    this.beganMs = this.nowMs;
    this.turn.run(isTimerDue);
  }

  private loop(): TurnParts["loop"] {
    const bench = this;
    return {
      get nowMs() {
        return bench.beganMs;
      },
      get isTurnLong() {
        return bench.nowMs - bench.beganMs > 10;
      },
      share: () => {
        const fromMs = bench.nowMs;
        return () => bench.nowMs - fromMs > 10;
      },
    };
  }
}

describe("a turn", () => {
  it("decides as of the moment at which the timer was due, though what was read by then takes long", () => {
    const bench = new Bench({ messageMs: 1, applyMs: 0 });
    const [a, b, c] = [{}, {}, {}] as ClientConnection[];
    const frame = { bytes: 1, messages: () => Array.from({ length: 40 }, () => keepalive) };
    for (const connection of [a, b]) bench.queue.clients.push(connection as ClientConnection, frame);
    const decisions = (): string[] => bench.told.filter((line) => line.startsWith("decided"));
    bench.run(true);
    assert.deepEqual([decisions(), bench.nowMs], [[], 1_040]);
    // It came after the timer: nothing waits for it.
    bench.queue.clients.push(c as ClientConnection, frame);
    bench.run(false);
    assert.deepEqual([decisions(), bench.nowMs], [["decided as of 1000"], 1_080]);
    bench.run(false);
    assert.equal(decisions().length, 1);
  });

  it("sees to what the last of a long one has asked for: nothing else would bring the next", () => {
    const bench = new Bench({ messageMs: 0, applyMs: 50 });
    bench.outputs = [output];
    bench.run(false);
    assert.deepEqual(bench.told, ["flushed", "applied", "flushed"]);
  });

  it("ends when it is long and more has come of it", () => {
    const bench = new Bench({ messageMs: 0, applyMs: 50 });
    bench.outputs = [output, output];
    bench.run(false);
    assert.deepEqual(bench.told, ["flushed", "applied"]);
  });
});
