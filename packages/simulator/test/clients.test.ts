/** Real client libraries in simulated processes: what they do is told to the history, and the checker understands it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { check, historyVersion } from "@holdfast/checker";
import type { History, HistoryEvent, Verdict } from "@holdfast/checker";
import { CallNumbers, Counts, RawClient, Resource, SimulatedClient, wholeWorkload } from "../src/clients/index.js";
import type { RunningClient, UntimedEvent, Workload } from "../src/clients/index.js";
import { SequencerBook } from "../src/invariants/index.js";
import { SimulatedProcess } from "../src/process.js";
import { streamOf } from "../src/random.js";
import { Scheduler } from "../src/scheduler.js";
import { TraceHash } from "../src/trace-hash.js";
import { TestCluster } from "./clients-cluster.js";

interface WorldOptions {
  readonly seed: number;
  readonly clients?: number;
  readonly rawClients?: number;
  readonly ttlMs?: number;
  readonly lateChance?: number;
  readonly workload?: Partial<Workload>;
}

class ClientsWorld {
  readonly hash = new TraceHash();
  readonly scheduler: Scheduler;
  readonly events: HistoryEvent[] = [];
  readonly counts = new Counts();
  readonly processes: SimulatedProcess[] = [];
  readonly clients: RunningClient[] = [];
  readonly cluster: TestCluster;
  readonly defects: unknown[] = [];

  constructor({ seed, clients = 3, rawClients = 0, ttlMs = 3_000, lateChance = 0, workload = {} }: WorldOptions) {
    const stream = (name: string) => streamOf(seed, name);
    this.scheduler = new Scheduler(stream("scheduler"), this.hash);
    const { counts, scheduler } = this;
    const sink = { emit: (event: UntimedEvent) => this.emit(event) };
    this.cluster = new TestCluster(scheduler, stream("cluster"), sink);
    const resource = new Resource(
      { wayMsMax: 2, lateChance, lateMsMax: 2 * ttlMs },
      { scheduler, random: stream("resource"), sink, counts },
    );
    const numbers = new CallNumbers();
    const onDefect = (error: unknown): void => void this.defects.push(error);
    for (let at = 1; at <= clients; at += 1) {
      const id = `c${at}`;
      const process = new SimulatedProcess(
        { id, rate: 1 },
        { scheduler, random: stream(`${id} process`), onEvent: () => undefined },
      );
      const transport = this.cluster.transportFor(process);
      const streamFor = (name: string) => stream(`${id} ${name}`);
      const whole = wholeWorkload({ names: ["a", "b", "c"], ttlMs });
      const options = {
        id,
        endpoints: ["n1:1"],
        connectTimeoutMs: 2_000,
        workers: 3,
        workload: { ...whole, ...workload },
      };
      // These nodes take no watches, and sign nothing.
      const unjudged = { judgeWatch: () => () => undefined, sequencers: new SequencerBook() };
      const parts = {
        process,
        scheduler,
        transport,
        streamFor,
        sink,
        numbers,
        resource,
        counts,
        ...unjudged,
        onDefect,
      };
      this.processes.push(process);
      this.clients.push(new SimulatedClient(options, parts));
    }
    for (let at = 1; at <= rawClients; at += 1) {
      const id = `r${at}`;
      const process = new SimulatedProcess(
        { id, rate: 1 },
        { scheduler, random: stream(`${id} process`), onEvent: () => undefined },
      );
      // To the cluster it is one node; the client takes them for two.
      const options = { id, endpoints: ["n1:1", "n1:2"], names: ["a", "b", "c"], ttlMs, pauseMsMax: 100 };
      const semaphores = [{ name: "s", slots: 2 }];
      const transport = this.cluster.transportFor(process);
      const parts = { process, scheduler, transport, sink, numbers, resource, counts, onDefect, random: stream(id) };
      this.clients.push(new RawClient({ ...options, semaphores }, parts));
    }
    for (const client of this.clients) client.start();
  }

  async run(ms: number): Promise<void> {
    await this.scheduler.run(this.scheduler.nowMs + ms);
  }

  async drain(msMax: number): Promise<void> {
    for (const client of this.clients) client.beginDrain();
    await this.scheduler.run(this.scheduler.nowMs + msMax, () => this.clients.every((client) => client.isIdle));
    const open = this.clients.filter((client) => !client.isIdle).map((client) => client.describe());
    assert.deepEqual(open, []);
    assert.deepEqual(this.defects, []);
    // The last answers of the cluster, and expiries.
    await this.run(10_000);
    this.cluster.end();
  }

  emit(event: UntimedEvent): void {
    this.events.push({ ...event, at: this.scheduler.nowMs });
  }

  verdict(): Verdict {
    const known = { origin: "test", nodes: ["n1"], electionTimeoutMs: 50, firstIndex: 1 };
    const history: History = { version: historyVersion, ...known, events: this.events };
    const verdict = check(history);
    const shown = verdict.violations.map(({ rule, message, events }) => {
      return [rule, message, ...events.map((at) => JSON.stringify(this.events[at]))].join("\n  ");
    });
    assert.deepEqual(shown, []);
    return verdict;
  }

  kinds(): ReadonlySet<string> {
    return new Set(this.events.map(({ kind }) => kind));
  }
}

test("a healthy run is judged, and found well", async () => {
  const world = new ClientsWorld({ seed: 1 });
  await world.run(25_000);
  await world.drain(20_000);
  const { judged } = world.verdict().counts;
  for (const rule of [
    "told-committed",
    "token-order",
    "guard",
    "hold-overlap",
    "one-effect",
    "acknowledged-lasts",
  ] as const) {
    assert.ok(judged[rule] > 0, rule);
  }
  assert.ok(judged.linearizability > 0);
  for (const mark of [
    "acquired",
    "released",
    "gaveUp",
    "refused: lock_held",
    "inspected",
    "closed",
    "waiter granted",
  ]) {
    assert.ok(world.counts.of(mark) > 0, mark);
  }
  assert.equal(world.counts.of("twin: update lost"), 0);
  assert.ok(world.counts.of("twin: written") > 0);
});

test("the same seed gives the same run", async () => {
  const digests: string[] = [];
  for (const seed of [7, 7, 8]) {
    const world = new ClientsWorld({ seed });
    await world.run(4_000);
    for (const event of world.events) world.hash.add(event.at, JSON.stringify(event));
    digests.push(world.hash.digest());
  }
  assert.equal(digests[0], digests[1]);
  assert.notEqual(digests[0], digests[2]);
});

test("paused holders lose their locks, and their late writes are refused", async () => {
  const world = new ClientsWorld({ seed: 2, lateChance: 0.1 });
  const random = streamOf(2, "pauses");
  for (let round = 0; round < 40; round += 1) {
    await world.run(random.between(100, 3_000));
    const process = random.pick(world.processes);
    world.emit({ kind: "paused", process: process.id });
    const ms = random.between(500, 8_000);
    if (random.chance(0.5)) process.pause(ms);
    else process.suspend(ms);
    await world.run(ms);
    world.emit({ kind: "resumed", process: process.id });
  }
  await world.drain(30_000);
  world.verdict();
  for (const mark of [
    "lock lost: loop_stall",
    "lock lost: clock_jump",
    "loss noticed late",
    "late write refused",
    "write after the loss",
    "twin: update lost",
    "session ended by client: loop_stall",
  ]) {
    assert.ok(world.counts.of(mark) > 0, `${mark}: ${JSON.stringify(world.counts.entries())}`);
  }
  const losses = world.events.filter((event) => event.kind === "state" && event.state === "lost");
  assert.ok(losses.some((event) => event.kind === "state" && event.since !== null && event.since < event.at - 100));
});

test("new terms, cut sockets and deaths leave a history that holds", async () => {
  const world = new ClientsWorld({ seed: 3, clients: 5 });
  const random = streamOf(3, "faults");
  for (let round = 0; round < 60; round += 1) {
    await world.run(random.between(50, 1_500));
    if (random.chance(0.5)) world.cluster.elect();
    else world.cluster.cut();
    if (round % 20 !== 19) continue;
    const [client] = world.clients.filter((each) => !each.isIdle);
    assert.ok(client !== undefined);
    client.kill();
    world.emit({ kind: "crashed", process: client.id });
    assert.deepEqual([client.isIdle, client.openCalls().length], [true, 0]);
  }
  await world.drain(30_000);
  world.verdict();
  for (const mark of ["session resumed", "resume sent"]) assert.ok(world.counts.of(mark) > 0, mark);
  for (const kind of [
    "call",
    "return",
    "state",
    "openSent",
    "sessionOpened",
    "sessionEnded",
    "sent",
    "told",
    "keepaliveSent",
    "keepaliveTold",
    "guardWrite",
  ]) {
    assert.ok(world.kinds().has(kind), kind);
  }
});

test("a drained client has no open calls, and says so", async () => {
  const world = new ClientsWorld({ seed: 4, clients: 2 });
  await world.run(5_000);
  const [client] = world.clients;
  assert.ok(client !== undefined);
  assert.ok(client.openCalls().every(({ ageMs, description }) => ageMs >= 0 && description !== ""));
  assert.match(client.describe(), /^c1 working; holds /);
  await world.drain(20_000);
  assert.match(client.describe(), /^c1 over; holds nothing; open: nothing$/);
});

test("hand-made frames in any order leave a history that holds", async () => {
  const counts = new Counts();
  for (let seed = 1; seed <= 5; seed += 1) {
    const world = new ClientsWorld({ seed, clients: 1, rawClients: 3 });
    const random = streamOf(seed, "faults");
    for (let round = 0; round < 20; round += 1) {
      await world.run(random.between(200, 2_000));
      if (random.chance(0.5)) world.cluster.elect();
      else world.cluster.cut();
    }
    await world.drain(60_000);
    const { judged } = world.verdict().counts;
    assert.ok(judged["one-effect"] > 0);
    for (const [mark, count] of world.counts.entries()) counts.add(mark, count);
  }
  for (const mark of [
    "raw: granted",
    "raw: slot granted",
    "raw: sent twice",
    "raw: late duplicate",
    "raw: late opening",
    "raw: orphan session",
    "raw: superseded",
    "raw: stranger cut off",
    "raw: wrong key",
    "raw: lost: max_hold",
    "raw: refused: invalid_argument",
    "raw: refused: not_leader",
    "raw: refused: session_gone",
  ]) {
    assert.ok(counts.of(mark) > 0, `${mark}: ${JSON.stringify(counts.entries())}`);
  }
});
