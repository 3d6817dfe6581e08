/** When the history is told that a lock is lost: also where no signal can say so any more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryEvent } from "@holdfast/checker";
import { connectWith } from "@holdfast/client";
import type { Lock, Transport } from "@holdfast/client";
import { HeldLock } from "../src/clients/held-lock.js";
import { Counts } from "../src/clients/index.js";
import type { UntimedEvent } from "../src/clients/index.js";
import { SessionLog } from "../src/clients/session-log.js";
import { SimulatedProcess } from "../src/process.js";
import { streamOf } from "../src/random.js";
import { Scheduler } from "../src/scheduler.js";
import { TraceHash } from "../src/trace-hash.js";
import { TestCluster } from "./clients-cluster.js";

test("who goes on after a jeopardy that stopped it hears of the loss in time", async () => {
  const world = new HolderWorld();
  const { lock, held } = await world.hold();
  await world.loseTouch(lock);
  world.isMute = false;
  await world.run(6_000);
  assert.ok(held.isLost);
  const [jeopardy, recovered, lost, ...rest] = world.states();
  assert.deepEqual([jeopardy?.state, recovered?.state, lost?.state, rest.length], ["jeopardy", "held", "lost", 0]);
  assert.equal(lost?.reason, "max_hold");
  assert.ok(lost.at - world.askedAt < maxHoldMs, `${lost.at}`);
});

test("a recovery with the maxHold over is a loss", async () => {
  const world = new HolderWorld();
  const { lock } = await world.hold();
  await world.loseTouch(lock);
  world.isMute = false;
  world.process.suspend(3_500);
  await world.run(4_500);
  assert.deepEqual(
    world.states().map(({ state }) => state),
    ["jeopardy", "lost"],
  );
});

const ttlMs = 12_000;
const maxHoldMs = 8_000;

/** One client with one lock, and a network that can swallow what it sends. */
class HolderWorld {
  isMute = false;
  askedAt = 0;
  readonly scheduler: Scheduler = new Scheduler(streamOf(1, "scheduler"), new TraceHash());
  readonly process: SimulatedProcess;
  private readonly events: HistoryEvent[] = [];
  private readonly sink = { emit: (event: UntimedEvent) => this.note(event) };
  private readonly cluster: TestCluster;
  private held: HeldLock | null = null;

  constructor() {
    const { scheduler } = this;
    this.cluster = new TestCluster(scheduler, streamOf(1, "cluster"), this.sink);
    const parts = { scheduler, random: streamOf(1, "process"), onEvent: () => undefined };
    this.process = new SimulatedProcess({ id: "c1", rate: 1 }, parts);
  }

  async run(ms: number): Promise<void> {
    await this.scheduler.run(this.scheduler.nowMs + ms);
  }

  async hold(): Promise<{ readonly lock: Lock; readonly held: HeldLock }> {
    const { process, scheduler, sink } = this;
    const logger = new SessionLog({
      onEnded: () => this.held?.onSessionEnded(),
      onJeopardy: () => this.held?.onJeopardy(),
      onRecovered: () => this.held?.onRecovered(),
    });
    const ports = { clock: process, random: streamOf(1, "library"), transport: this.transport() };
    const connected = connectWith({ endpoints: ["n1:1"], ttlMs, logger }, ports);
    await this.run(100);
    const holdfast = await connected;
    this.askedAt = scheduler.nowMs;
    const acquired = holdfast.acquire("a", { maxHoldMs, stopOn: "jeopardy" });
    await this.run(100);
    const lock = await acquired;
    const held = new HeldLock(1, null, lock, maxHoldMs, { process, scheduler, sink, counts: new Counts() });
    this.held = held;
    return { lock, held };
  }

  async loseTouch(lock: Lock): Promise<void> {
    this.isMute = true;
    await this.scheduler.run(this.scheduler.nowMs + maxHoldMs, () => lock.signal.aborted);
    assert.equal(lock.state, "jeopardy");
  }

  states(): readonly Extract<HistoryEvent, { readonly kind: "state" }>[] {
    return this.events.filter((event) => event.kind === "state");
  }

  private transport(): Transport {
    const inner = this.cluster.transportFor(this.process);
    return {
      open: (endpoint, events) => {
        const socket = inner.open(endpoint, events);
        const send = (frame: Uint8Array): void => (this.isMute ? undefined : socket.send(frame));
        return { send, ping: () => socket.ping(), close: () => socket.close(), terminate: () => socket.terminate() };
      },
    };
  }

  private note(event: UntimedEvent): void {
    this.events.push({ ...event, at: this.scheduler.nowMs });
  }
}
