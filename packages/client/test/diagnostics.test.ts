import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { test } from "node:test";
import { World } from "./world/world.js";

test("losses and session states are published, in order", async () => {
  const seen: unknown[] = [];
  const onSession = (facts: unknown): void => void seen.push(facts);
  const onLock = (facts: unknown): void => void seen.push(facts);
  subscribe("holdfast:client:session", onSession);
  subscribe("holdfast:client:lock", onLock);
  try {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 4_000 });
    const lock = await world.within(100, holdfast.acquire("doc:42"));
    world.cluster.hasQuorum = false;
    await world.until(3_000, "jeopardy", () => lock.state === "jeopardy");
    world.cluster.restoreQuorum();
    await world.until(1_000, "held", () => lock.state === "held");
    for (const node of world.cluster.nodes) node.reach = "silent";
    await world.clock.advance(4_000);
    const session = { session: 101, ttlMs: 4_000, reason: null };
    const states = seen.filter((facts) => (facts as { state?: string }).state !== "jeopardy");
    assert.deepEqual(states, [
      { ...session, session: null, state: "opening" },
      { ...session, state: "open" },
      { ...session, state: "recovered" },
      { ...session, state: "ended", reason: "expired" },
      { names: ["doc:42"], token: lock.token, session: 101, reason: "expired" },
    ]);
    assert.equal(seen.length - states.length, 2);
  } finally {
    unsubscribe("holdfast:client:session", onSession);
    unsubscribe("holdfast:client:lock", onLock);
  }
});
