/**
 * One seed, one run of a whole cluster: real hosts and a virtual world. First faults of kinds and rates that the seed draws, then all
 * heals, and everything that is open must end. A judge watches all of it.
 */
import assert from "node:assert/strict";
import { LockJudge } from "./lock-judge.js";
import type { UserConnection, UserPath } from "./user-connection.js";
import { electionTimeoutMs, seededRandom, VirtualCluster } from "./virtual-cluster.js";
import type { VirtualNode } from "./virtual-cluster.js";
import { VirtualUser } from "./virtual-user.js";
import type { ServerMessage } from "@holdfast/wire";

const ttlMs = 2_400;
const faultyMs = 4_500;

type Fault = () => void;

export class RandomSchedule {
  readonly judge = new LockJudge();
  readonly faults = new Map<string, number>();
  private readonly random: { integer(below: number): number };
  private readonly cluster: VirtualCluster;
  private readonly users: VirtualUser[] = [];
  private readonly slowLinks = new Map<string, number>();
  private readonly jitterMs: number;
  /** Between two faults, and how long one lasts, at most. */
  private readonly periodMs: number;
  private readonly lastingMs: number;
  private readonly kinds: readonly (readonly [string, Fault])[];
  private readonly names: readonly string[];
  private userCount = 0;
  private isHealed = false;

  constructor(seed: number) {
    const random = seededRandom(Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995);
    this.random = random;
    this.jitterMs = random.integer(3) === 0 ? 1 + random.integer(40) : 1;
    this.periodMs = 100 * 2 ** random.integer(6);
    this.lastingMs = 100 * 2 ** random.integer(7);
    const rates = new Map<string, number>();
    this.cluster = new VirtualCluster({
      nodes: random.integer(4) === 0 ? 5 : 3,
      seed,
      snapshotEntries: random.integer(2) === 0 ? 20 + random.integer(200) : 100_000,
      recordsPerPiece: 1 + random.integer(6),
      uncommittedBytesMax: random.integer(5) === 0 ? 1_500 : 1_000_000,
      rateFor: (id) => {
        if (!rates.has(id)) rates.set(id, this.drawRate());
        return rates.get(id) ?? 1;
      },
      delayFor: (from, to) => this.delayMs(from, to),
      onEffects: (node, index, effects) => this.judge.onApplied(node.id, index, effects, this.cluster.clock.nowMs),
    });
    const all = ["a", "b", "c", "slots"];
    this.names = all.slice(0, 1 + random.integer(all.length));
    this.kinds = this.drawKinds();
    for (const node of this.cluster.nodes) node.disk.readMs = () => random.integer(3);
    const count = 2 + random.integer(3);
    for (let at = 0; at < count; at += 1) this.addUser();
  }

  async run(): Promise<void> {
    const { clock } = this.cluster;
    const endMs = clock.nowMs + faultyMs;
    await this.cluster.leader();
    while (clock.nowMs < endMs) {
      await clock.pass(20 + this.random.integer(this.periodMs));
      const [name, run] = this.kinds[this.random.integer(this.kinds.length)] as (typeof this.kinds)[number];
      this.faults.set(name, (this.faults.get(name) ?? 0) + 1);
      run();
      this.checkNodes();
    }
    this.heal();
    await this.expectProgress();
    await this.expectRest();
  }

  /** For a failed run: where everybody stands. */
  describe(): string {
    const { nodes, cuts } = this.cluster;
    const states = nodes.map(({ id, host, clock }) => {
      const status = host?.status();
      return status === undefined
        ? `${id} is down`
        : `${id} ${status.role} of ${status.leader} in ${status.term}, ${status.lastApplied}/${status.commitIndex}/${status.lastIndex}${clock.isPaused ? ", paused" : ""}`;
    });
    return [...states, `cut: ${[...cuts].join(" ")}`, ...this.users.map((user) => user.describe())].join("\n");
  }

  private checkNodes(): void {
    // A breach that the judge has found inside of a node's turn stands here too.
    assert.equal(this.cluster.errors.join("\n"), "");
    for (const { id, stopped } of this.cluster.nodes)
      assert.ok(stopped === null || stopped.kind === "asked", `${id} goes on`);
  }

  private heal(): void {
    const { cluster } = this;
    this.isHealed = true;
    this.slowLinks.clear();
    for (const node of cluster.nodes) {
      node.disk.syncMs = () => 1;
      node.clock.resume();
      if (node.stopped !== null) this.kill(node);
      if (node.host === null) cluster.start(node);
    }
    for (const user of this.users) user.clock.resume();
    cluster.heal();
  }

  /** A leader soon, and every request ends: what is held is given back, so every waiter is granted. */
  private async expectProgress(): Promise<void> {
    const { clock } = this.cluster;
    const live = this.users.filter((user) => !user.isKilled);
    for (const user of live) user.isDraining = true;
    await this.cluster.leader(6 * electionTimeoutMs);
    const isDone = (): boolean => {
      this.checkNodes();
      return live.every((user) => user.isDone);
    };
    // Those that died hold on for twice their TTL and three election timeouts at most.
    await clock.until("all requests have ended", isDone, 2 * ttlMs + 12 * electionTimeoutMs);
    this.checkNodes();
  }

  /** Everybody is gone: all sessions expire, nothing is left, all nodes are equal, and nobody campaigns any more. */
  private async expectRest(): Promise<void> {
    const { cluster } = this;
    await cluster.clock.pass(4 * electionTimeoutMs);
    const leader = await cluster.leader();
    const term = leader.host?.status().term;
    for (const user of this.users) if (!user.isKilled) user.kill(this.random.integer(2) === 0);
    const isEmpty = (): boolean => {
      this.checkNodes();
      return leader.host?.status().sessions === 0 && leader.host.status().locks === 0;
    };
    await cluster.clock.until("all sessions have expired", isEmpty, 2 * ttlMs + 3 * electionTimeoutMs);
    await cluster.converged(3 * electionTimeoutMs + 2_000);
    this.checkNodes();
    this.judge.assertEmpty();
    assert.equal(leader.host?.status().term, term, "the term is at rest");
    for (const { host } of cluster.nodes) host?.["applier"].machine.checkInvariants();
  }

  // Users.

  private addUser(): void {
    this.userCount += 1;
    const renewMs = this.random.integer(2) === 0 ? ttlMs / 3 : ttlMs / 16;
    const options = { ttlMs, renewMs, names: this.names, rate: this.drawRate() };
    const path: UserPath = {
      delayMs: () => 1 + this.random.integer(this.jitterMs + 1),
      isCut: (from, to) => this.cluster.cuts.has(`${from}>${to}`),
      onSent: (node, connection, message) => this.onSent(node, connection, message, user),
    };
    const user: VirtualUser = new VirtualUser(
      `u${this.userCount}`,
      options,
      this.cluster,
      this.judge,
      path,
      this.random,
    );
    this.users.push(user);
  }

  private onSent(node: VirtualNode, _connection: UserConnection, message: ServerMessage, user: VirtualUser): void {
    const { judge } = this;
    if (message.kind === "outcome")
      judge.onOutcomeSent(message.session, message.request, message.index, message.outcome);
    else if (message.kind === "acknowledged") judge.onAcknowledged(message.session, message.number);
    else if (message.kind === "resumed")
      judge.onResumedSent(message, node.host?.status().lastApplied ?? 0, user.resumedAfter);
  }

  // Faults.

  private drawRate(): number {
    return 1 + (this.random.integer(9) - 4) / 1_000;
  }

  private delayMs(from: string, to: string): number {
    const slowMs = this.slowLinks.get(`${from}>${to}`) ?? 0;
    return 1 + this.random.integer(this.jitterMs) + (slowMs === 0 ? 0 : this.random.integer(slowMs));
  }

  private drawKinds(): readonly (readonly [string, Fault])[] {
    const { cluster, random } = this;
    const all: readonly (readonly [string, Fault])[] = [
      ["kill the leader", () => this.kill(this.leaderOrAny())],
      ["kill a node", () => this.kill(this.anyNode())],
      ["kill all", () => cluster.nodes.forEach((node) => this.kill(node))],
      ["pause a node", () => this.leaderOrAny().clock.pause(this.someMs())],
      ["pause all nodes", () => cluster.nodes.forEach((node) => node.clock.pause(this.someMs()))],
      ["cut one way", () => this.cut([[this.leaderOrAny(), this.anyNode()]], random.integer(2), 1)],
      ["cut both ways", () => this.cut([[this.leaderOrAny(), this.anyNode()]], 1, 1)],
      ["isolate", () => this.isolate(this.leaderOrAny(), 1, 1)],
      ["deafen", () => this.isolate(this.leaderOrAny(), 0, 1)],
      ["depose", () => this.depose()],
      ["rumour of a death", () => this.rumour(this.anyNode())],
      ["stop in order", () => this.stopInOrder()],
      ["silence", () => this.isolate(this.leaderOrAny(), 1, 0)],
      ["slow link", () => this.slowLink()],
      ["slow disk", () => this.slowDisk()],
      [
        "transfer",
        () => this.users.forEach((user) => user.askTransfer(random.integer(2) === 0 ? null : this.anyNode().id)),
      ],
      ["kill a user", () => this.killUser()],
      ["pause a user", () => this.anyUser().clock.pause(this.someMs() + (random.integer(2) === 0 ? ttlMs : 0))],
      ["cut a user", () => this.cut([[this.anyUser(), this.leaderOrAny()]], random.integer(2), random.integer(2))],
    ];
    const drawn = all.filter(() => random.integer(100) < 50);
    return drawn.length === 0 ? all : drawn;
  }

  /** How long a fault lasts. */
  private someMs(): number {
    return 20 + this.random.integer(this.lastingMs);
  }

  private kill(node: VirtualNode): void {
    if (node.host === null) return;
    const { random } = this;
    this.cluster.kill(node, random.integer(3) > 0, random.integer(2) === 0);
    for (const user of this.users) if (random.integer(4) > 0) user.onNodeGone(node);
    this.cluster.clock.after(this.isHealed ? 0 : this.someMs(), () => {
      if (node.host === null) this.cluster.start(node);
    });
  }

  /** The others believe that the leader's process is gone; it lives, and still has its clients. */
  private depose(): void {
    const leader = this.leaderOrAny();
    this.isolate(leader, 1, 1);
    this.rumour(leader);
  }

  private rumour(gone: VirtualNode): void {
    for (const node of this.cluster.nodes) {
      const { host } = node;
      if (node !== gone) node.clock.deliver(() => host?.onPeerGone(gone.id));
    }
  }

  private stopInOrder(): void {
    const node = this.leaderOrAny();
    const { host } = node;
    if (host === null) return;
    void host.transferAndStop().then(() => {
      if (node.host !== host) return;
      assert.deepEqual(node.stopped, { kind: "asked" });
      this.kill(node);
    });
  }

  private isolate(node: VirtualNode, out: number, back: number): void {
    const pairs = this.cluster.nodes.map((other): [VirtualNode, VirtualNode] => [node, other]);
    this.cut(pairs, out, back);
  }

  /** What is lost meanwhile is lost. At the end the links may be made anew, or go on as if nothing had been. */
  private cut(pairs: readonly (readonly [{ id: string }, { id: string }])[], out: number, back: number): void {
    const { cuts, clock } = this.cluster;
    const ways: string[] = [];
    for (const [a, b] of pairs) {
      if (a.id === b.id) continue;
      if (out === 1) ways.push(`${a.id}>${b.id}`);
      if (back === 1) ways.push(`${b.id}>${a.id}`);
    }
    for (const way of ways) cuts.add(way);
    const areMadeAnew = this.random.integer(2) === 0;
    clock.after(this.someMs(), () => {
      for (const way of ways) cuts.delete(way);
      if (areMadeAnew) this.cluster.relink();
    });
  }

  private slowLink(): void {
    const way = `${this.leaderOrAny().id}>${this.anyNode().id}`;
    this.slowLinks.set(way, this.random.integer(1_500));
    this.cluster.clock.after(this.someMs(), () => this.slowLinks.delete(way));
  }

  private slowDisk(): void {
    const { random } = this;
    const { disk } = this.leaderOrAny();
    const slowestMs = [2, 30, 300, 2_000][random.integer(4)] ?? 1;
    disk.syncMs = () => 1 + random.integer(slowestMs);
    this.cluster.clock.after(this.someMs(), () => {
      disk.syncMs = () => 1;
    });
  }

  private killUser(): void {
    this.anyUser().kill(this.random.integer(2) === 0);
    this.addUser();
  }

  private anyNode(): VirtualNode {
    const { nodes } = this.cluster;
    return nodes[this.random.integer(nodes.length)] as VirtualNode;
  }

  private leaderOrAny(): VirtualNode {
    const leader = this.random.integer(10) < 7 ? this.cluster.leaders()[0] : undefined;
    return leader ?? this.anyNode();
  }

  private anyUser(): VirtualUser {
    const live = this.users.filter((user) => !user.isKilled);
    return live[this.random.integer(live.length)] as VirtualUser;
  }
}
