import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeCommand } from "@holdfast/wire";
import { electionTimeoutMs, VirtualCluster } from "./virtual/virtual-cluster.js";

const query = { kind: "query", id: 1, query: { kind: "status" } } as const;

describe("turn queue", () => {
  const floods: [string, { frames: number; messages: number; messageMs: number }][] = [
    ["of frames", { frames: 1_000, messages: 1, messageMs: 1 }],
    ["of messages in few frames", { frames: 30, messages: 100, messageMs: 0.3 }],
    ["of frames without messages", { frames: 1_000, messages: 0, messageMs: 1 }],
  ];
  for (const [what, flood] of floods)
    it(`lets a leader hear its peers through a flood ${what}`, () => keepsLeading(flood));

  /** So much comes each second that the loop is busy all the time. */
  async function keepsLeading({ frames, messages, messageMs }: (typeof floods)[number][1]): Promise<void> {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const term = leader.host?.status().term;
    const client = cluster.client(leader);
    await client.expect("welcome");
    const { host } = leader;
    assert.ok(host);
    const handle = host.gateway.handle.bind(host.gateway);
    host.gateway.handle = (share) => {
      cluster.clock.nowMs += Math.max(1, share.messages.length) * messageMs;
      handle(share);
    };
    let isFlood = true;
    const flood = (): void => {
      const frame = Array.from({ length: messages }, () => query);
      for (let count = 0; count < frames && isFlood; count += 1)
        host.gateway.onFrame(client, { bytes: 0, messages: () => frame });
      if (isFlood) cluster.clock.after(1_000, flood);
    };
    flood();
    await cluster.clock.pass(6 * electionTimeoutMs);
    isFlood = false;
    assert.equal(leader.host?.status().role, "leader");
    assert.equal(leader.host?.status().term, term);
    assert.deepEqual(cluster.errors, []);
  }

  it("decides what is due although frames come faster than they are handled", async () => {
    const cluster = new VirtualCluster({ nodes: 1 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const payload = encodeCommand({ kind: "openSession", key: "a".repeat(32), ttlMs: 2_000, info: "" });
    client.sendAll({ kind: "command", payload });
    await client.expect("sessionOpened");
    const { host } = leader;
    assert.ok(host);
    const handle = host.gateway.handle.bind(host.gateway);
    host.gateway.handle = (share) => {
      cluster.clock.nowMs += 1.2;
      handle(share);
    };
    let isFlood = true;
    const flood = (): void => {
      for (let count = 0; count < 100; count += 1) {
        host.gateway.onFrame(client, { bytes: 0, messages: () => [query] });
      }
      if (isFlood) cluster.clock.after(100, flood);
    };
    flood();
    const startMs = cluster.clock.nowMs;
    await cluster.clock.until("the session expires", () => host.status().sessions === 0, 15_000);
    isFlood = false;
    assert.ok(cluster.clock.nowMs - startMs >= 2_000);
  });
});
