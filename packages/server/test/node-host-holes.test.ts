/** Schedules that the node host once did not survive. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Command } from "@holdfast/lock";
import type { Message } from "@holdfast/raft";
import { encodeCommand } from "@holdfast/wire";
import { key, openSession } from "./virtual/opening.js";
import { electionTimeoutMs, VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient, VirtualNode } from "./virtual/virtual-cluster.js";

function command(client: VirtualClient, value: Command): void {
  client.sendAll({ kind: "command", payload: encodeCommand(value) });
}

function open(client: VirtualClient, at: number, ttlMs = 600_000): Promise<number> {
  return openSession(client, at, ttlMs);
}

function acquire(client: VirtualClient, session: number, request: number, name: string): void {
  const terms = {
    names: [name],
    mode: "shared",
    slots: 0,
    wait: true,
    lockDelayMs: 0,
    maxHoldMs: 0,
    info: "",
  } as const;
  command(client, { kind: "acquire", session, request, settled: 1, seen: [], ...terms });
}

function others(cluster: VirtualCluster, ...nodes: readonly VirtualNode[]): VirtualNode[] {
  return cluster.nodes.filter((node) => !nodes.includes(node));
}

function cut(cluster: VirtualCluster, from: readonly VirtualNode[], to: readonly VirtualNode[]): void {
  for (const a of from) {
    for (const b of to) {
      cluster.cuts.add(`${a.id}>${b.id}`);
      cluster.cuts.add(`${b.id}>${a.id}`);
    }
  }
}

describe("node host: a leader with a backlog", () => {
  it("answers no forced release with an older one of the same token", async () => {
    const cluster = new VirtualCluster();
    const first = cluster.client(await cluster.leader());
    const session = await open(first, 1);
    acquire(first, session, 1, "doc");
    const granted = await first.expect("outcome", ({ request }) => request === 1);
    const force = { kind: "forceRelease", name: "doc", token: granted.index, principal: "me", lockDelayMs: 0 } as const;
    first.sendAll({ ...force, id: 1 });
    assert.equal((await first.expect("forced")).ended, 1);
    for (const node of cluster.nodes) cluster.kill(node);
    for (const node of cluster.nodes) {
      // The leader's own no-op takes long to commit: until then nothing of the log is applied.
      node.disk.syncMs = () => 40;
      cluster.start(node);
    }
    const { clock } = cluster;
    await clock.until("a new leader", () => cluster.leaders().length > 0, 20 * electionTimeoutMs);
    const [leader] = cluster.leaders();
    assert.ok(leader);
    assert.equal(leader.host?.status().lastApplied, 0);
    const second = cluster.client(leader);
    second.sendAll({ ...force, id: 1 });
    assert.equal((await second.expect("forced")).ended, 0);
  });
});

describe("node host: what peers are held to", () => {
  it("a late acknowledgement of an old term is no promise about the entries that took its place", async () => {
    let lateMs = 0;
    let late = "";
    const cluster = new VirtualCluster({ nodes: 5, delayFor: (from, to) => (`${from}>${to}` === late ? lateMs : 1) });
    const old = await cluster.leader();
    const client = cluster.client(old);
    const session = await open(client, 1);
    const [partner, ...majority] = others(cluster, old);
    assert.ok(partner);
    // The old leader reaches one follower only, and hears it late.
    cut(cluster, [old, partner], majority);
    late = `${partner.id}>${old.id}`;
    lateMs = 8_000;
    for (let request = 1; request <= 5; request += 1) acquire(client, session, request, `doc ${request}`);
    await cluster.clock.pass(100);
    const index = partner.host?.status().lastIndex ?? 0;
    await cluster.clock.until("a new leader", () => cluster.leaders().some((node) => majority.includes(node)), 5_000);
    const [next] = cluster.leaders().filter((node) => majority.includes(node));
    assert.ok(next);
    const again = cluster.client(next);
    await open(again, 2);
    for (let at = 3; at < 12; at += 1) await open(again, at);
    assert.ok((next.host?.status().lastIndex ?? 0) > index);
    // The old leader's own log is overwritten; then it hears of the old entries. Its partner learns nothing of the new term.
    cluster.cuts.add(`${old.id}>${partner.id}`);
    for (const node of majority) {
      cluster.cuts.delete(`${node.id}>${old.id}`);
      cluster.cuts.delete(`${old.id}>${node.id}`);
    }
    await cluster.clock.pass(9_000);
    assert.equal(old.host?.status().leader, next.id);
    assert.equal(partner.host?.status().lastIndex, index, "its partner still has what it acknowledged");
    cluster.kill(partner, false);
    cluster.start(partner);
    cluster.heal();
    await cluster.converged();
    assert.deepEqual(cluster.errors, []);
  });
});

describe("node host: a client that has seen more than the leader", () => {
  it("is not refused by a leader that handed over and doesn't know it yet", async () => {
    const cluster = new VirtualCluster();
    const old = await cluster.leader();
    // What a new cluster begins with is through: nothing holds the transfer up.
    await cluster.clock.pass(1_000);
    cluster.client(old).sendAll({ kind: "transfer", id: 1, to: null });
    await cluster.clock.pass(2);
    old.clock.pause(300);
    cut(cluster, [old], others(cluster, old));
    const isNext = (node: VirtualNode): boolean => node !== old && node.host?.status().role === "leader";
    await cluster.clock.until("another leader", () => cluster.nodes.some(isNext), 100);
    const next = cluster.nodes.find(isNext);
    assert.ok(next);
    await open(cluster.client(next), 1);
    const { lastApplied: seenIndex = 0 } = next.host?.status() ?? {};
    const late = cluster.client(old, seenIndex);
    await cluster.clock.until("it wakes", () => !old.clock.isPaused, 5_000);
    assert.equal(old.host?.status().role, "leader", "it does not know yet");
    await late.expect("welcome");
    cluster.heal();
    const moved = await late.expect("leader", (message) => message.leader !== null);
    assert.equal(moved.leader?.id, next.id);
    assert.deepEqual([late.closed, cluster.errors], [null, []]);
  });

  it("is refused when history was lost", async () => {
    const cluster = new VirtualCluster();
    const client = cluster.client(await cluster.leader(), 4_711);
    assert.match(
      JSON.stringify((await client.expect("refused")).refusal),
      /history regressed: the client has seen index 4711/,
    );
    assert.equal(client.closed, "4000 incompatible");
  });
});

describe("node host: a transfer to the node that leads already", () => {
  it("is answered at once, and changes nothing", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const term = leader.host?.status().term;
    const client = cluster.client(leader);
    await client.expect("welcome");
    client.sendAll({ kind: "transfer", id: 1, to: leader.id });
    await cluster.clock.pass(20);
    const answer = await client.expect("transferred");
    assert.equal(answer.leader?.id, leader.id);
    await cluster.clock.pass(3_000);
    assert.deepEqual([leader.host?.status().role, leader.host?.status().term], ["leader", term]);
    assert.deepEqual(cluster.errors, []);
  });
});

describe("node host: an openSession that comes twice", () => {
  it("is answered, though its repetition is refused", async () => {
    const cluster = new VirtualCluster({ uncommittedBytesMax: 200 });
    const leader = await cluster.leader();
    // What a new cluster begins with is through: the session's openings alone take the room.
    await cluster.clock.pass(1_000);
    const client = cluster.client(leader);
    await client.expect("welcome");
    const once = {
      kind: "command",
      payload: encodeCommand({ kind: "openSession", key: key(1), ttlMs: 5_000, info: "x".repeat(100) }),
    } as const;
    client.sendAll(once, once, once);
    await client.expect("refused", ({ refusal }) => refusal.code === "overloaded");
    const { session } = await client.expect("sessionOpened");
    client.sendAll({ kind: "keepalive", session, number: 1 });
    await client.expect("acknowledged");
    assert.equal(leader.host?.gateway["sessions"]["openings"].size, 0);
  });
});

describe("node host: snapshots", () => {
  /** A follower takes a long snapshot from a leader that completes a shorter one meanwhile; the follower begins after `delayMs`. */
  async function takeWhileReplaced(delayMs: number): Promise<void> {
    const cluster = new VirtualCluster({ snapshotEntries: 60, recordsPerPiece: 10 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1);
    const [away] = others(cluster, leader);
    assert.ok(away);
    cluster.kill(away, false);
    for (let request = 1; request <= 130; request += 1) acquire(client, session, request, `doc ${request}`);
    await cluster.clock.until("a snapshot", () => (leader.disk.snapshot?.chunks ?? 0) > 11, 10_000);
    const { chunks, base } = leader.disk.snapshot ?? { chunks: 0, base: null };
    away.disk.syncMs = () => 20;
    leader.disk.syncMs = () => 60;
    for (let request = 1; request <= 70; request += 1) {
      const numbers = { session, request: 130 + request, settled: request, seen: [130 + request - 1] };
      command(client, { kind: "release", of: request, afterMs: 0, ...numbers });
    }
    await cluster.clock.pass(delayMs);
    cluster.start(away);
    await cluster.clock.until("another", () => leader.disk.snapshot?.base !== base, 20_000);
    assert.ok((leader.disk.snapshot?.chunks ?? 99) < chunks, "the new one is shorter");
    await cluster.converged(60_000).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${delayMs} ms later: ${cluster.errors.join("; ")}`);
    });
    assert.deepEqual(cluster.errors, []);
  }

  it("a chunk of an older snapshot is not taken for its last because the newest has so few", async () => {
    for (let delayMs = 300; delayMs <= 420; delayMs += 20) await takeWhileReplaced(delayMs);
  });
});

describe("node host: snapshots under load", () => {
  it("a follower is brought up though new snapshots come faster than it can take one", async () => {
    const cluster = new VirtualCluster({ snapshotEntries: 60, recordsPerPiece: 10 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1);
    const [away] = others(cluster, leader);
    assert.ok(away);
    cluster.kill(away, false);
    const held = 150;
    for (let request = 1; request <= held; request += 1) acquire(client, session, request, `doc ${request}`);
    await cluster.clock.until("a snapshot", () => (leader.disk.snapshot?.chunks ?? 0) > 12, 10_000);
    away.disk.syncMs = () => 20;
    // 250 entries a second: a snapshot every quarter of a second, each of 16 chunks that take the follower 25 ms.
    let request = held;
    const load = (): void => {
      if (request > 4_000) return;
      const last = request;
      request += 2;
      const numbers = { session, settled: 1, seen: last > held ? [last - 1, last] : [] };
      const terms = {
        names: ["busy"],
        mode: "shared",
        slots: 0,
        wait: true,
        lockDelayMs: 0,
        maxHoldMs: 0,
        info: "",
      } as const;
      command(client, { kind: "acquire", request: last + 1, ...numbers, ...terms });
      command(client, { kind: "release", request: last + 2, ...numbers, of: last + 1, afterMs: 0 });
      cluster.clock.after(8, load);
    };
    load();
    cluster.start(away);
    const lag = (): number => (leader.host?.status().lastApplied ?? 0) - (away.host?.status().lastApplied ?? 0);
    await cluster.clock.pass(300);
    await cluster.clock.until("it keeps up", () => lag() < 30, 8_000);
    assert.ok(request < 4_000, "while the load goes on");
    await cluster.clock.pass(2_000);
    assert.ok(lag() < 30, `${lag()} entries behind`);
    assert.deepEqual(cluster.errors, []);
  });
});

describe("node host: a snapshot that is no whole one", () => {
  it("ends the node before it takes the place of the log on its disk", async () => {
    const cluster = new VirtualCluster({ snapshotEntries: 60, recordsPerPiece: 10 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1);
    const [away] = others(cluster, leader);
    assert.ok(away);
    cluster.kill(away, false);
    for (let request = 1; request <= 130; request += 1) acquire(client, session, request, `doc ${request}`);
    await cluster.clock.until("a snapshot", () => (leader.disk.snapshot?.chunks ?? 0) > 4, 10_000);
    const { index } = leader.disk.base.position;
    const snapshot = leader.disk.snapshots.get(index);
    assert.ok(snapshot);
    leader.disk.snapshots.set(index, { base: snapshot.base, chunks: snapshot.chunks.slice(0, 4) });
    const before = away.disk.restored();
    cluster.start(away);
    await cluster.clock.until("it stops", () => away.stopped !== null, 20_000);
    await cluster.clock.pass(100);
    assert.match(cluster.errors.join(), /the snapshot is not complete/);
    assert.deepEqual(away.disk.restored().base, before.base, "its disk is as it was");
  });
});

describe("node host: stalls", () => {
  it("a turn that takes long is a stall: nobody was heard meanwhile", async () => {
    let stallMs = 0;
    const cluster = new VirtualCluster({
      nodes: 1,
      onEffects: () => {
        // The loop is stuck in the middle of a turn.
        cluster.clock.nowMs += stallMs;
        stallMs = 0;
      },
    });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1, 10_000);
    const openedAtMs = cluster.clock.nowMs;
    await cluster.clock.pass(1_000);
    stallMs = 9_000;
    // What is opened in that turn has an earlier deadline than what the timer was set for.
    await open(client, 2, 2_000);
    await client.expect("sessionEnded", (message) => message.session === session, 40_000);
    const afterMs = cluster.clock.nowMs - openedAtMs;
    assert.ok(afterMs >= 10_100 + 4_900, `ended after ${afterMs} ms, although the timer of 5,050 ms fired at 10,000`);
  });

  it("a long backlog is applied in turns that leave time for heartbeats", async () => {
    let costMs = 0;
    let applied = 0;
    let longestMs = 0;
    let turnAtMs = 0;
    const cluster = new VirtualCluster({
      onEffects: (node) => {
        if (costMs === 0 || node !== slow) return;
        applied += 1;
        cluster.clock.nowMs += costMs;
        longestMs = Math.max(longestMs, cluster.clock.nowMs - turnAtMs);
      },
    });
    const leader = await cluster.leader();
    const [slow] = others(cluster, leader);
    assert.ok(slow);
    cluster.kill(slow, false);
    const client = cluster.client(leader);
    for (let at = 1; at <= 4; at += 1) {
      const session = await open(client, at);
      for (let request = 1; request <= 1_000; request += 1) acquire(client, session, request, `doc ${at} ${request}`);
      await client.expect("outcome", (message) => message.session === session && message.request === 1_000);
    }
    cluster.start(slow);
    const { host } = slow;
    assert.ok(host);
    const turn = host["turn"];
    const run = turn.run.bind(turn);
    turn.run = (isTimerDue: boolean) => {
      turnAtMs = cluster.clock.nowMs;
      run(isTimerDue);
    };
    costMs = 0.1;
    await cluster.clock.until("the backlog is applied", () => applied >= 4_000, 60_000);
    assert.ok(longestMs < electionTimeoutMs / 4, `a turn took ${longestMs} ms`);
    assert.deepEqual(cluster.errors, []);
  });
});

describe("node host: stopping", () => {
  it("ends at once when the disk fails while leadership is being handed over", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1);
    for (const node of others(cluster, leader)) node.clock.pause(10_000);
    leader.disk.fails = true;
    leader.disk.syncMs = () => 30;
    let isStopped = false;
    acquire(client, session, 1, "doc");
    await cluster.clock.pass(10);
    void leader.host?.transferAndStop().then(() => {
      isStopped = true;
    });
    await cluster.clock.pass(50);
    assert.equal(leader.stopped?.kind, "storage");
    assert.ok(isStopped, "nothing is left to wait for");
  });

  it("after a broken invariant nothing leaves the node, not even what was written before", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const [follower] = others(cluster, leader);
    assert.ok(follower);
    const client = cluster.client(leader);
    const session = await open(client, 1);
    follower.disk.syncMs = () => 100;
    acquire(client, session, 1, "doc");
    await cluster.clock.pass(20);
    const { host } = follower;
    const sent: string[] = [];
    assert.ok(host);
    host["turn"].run = () => {
      throw new Error("broken");
    };
    const { links } = host["parts"];
    links.send = (_: string, messages: readonly Message[]) => void sent.push(...messages.map(({ kind }) => kind));
    host.onPeerReset(leader.id);
    await cluster.clock.pass(300);
    assert.equal(follower.stopped?.kind, "internal");
    assert.deepEqual(sent, []);
  });
});
