/** Questions and orders that belong to no session. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ChangeRefusedError } from "../src/errors.js";
import type { HoldfastError } from "../src/errors.js";
import { Stranger } from "./world/stranger.js";
import { outcomeOf, World } from "./world/world.js";

describe("questions", () => {
  test("inspect, list, sessions", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire(["doc:1", "doc:2", "other"]));
    const view = await world.within(100, holdfast.inspect("doc:1"));
    assert.equal(view?.holders[0]?.token, lock.token);
    assert.equal(await world.within(100, holdfast.inspect("free")), null);
    const docs = await world.within(100, holdfast.list({ prefix: "doc:" }));
    assert.deepEqual(
      docs.map(({ name }) => name),
      ["doc:1", "doc:2"],
    );
    const sessions = await world.within(100, holdfast.sessions());
    assert.equal(sessions.length, 1);
    assert.equal(world.clock.isKept, false);
  });

  test("a list longer than one answer is read in pieces", async () => {
    const world = new World();
    const holdfast = await world.connect();
    for (const key of ["a", "b", "c"]) {
      const stranger = new Stranger(world.cluster, key.repeat(32));
      for (let at = 0; at < 800; at += 1) stranger.acquire(`lock-${key}-${at}`);
    }
    const all = await world.within(500, holdfast.list());
    assert.equal(all.length, 2_400);
    assert.equal(new Set(all.map(({ name }) => name)).size, 2_400);
  });

  // B 48: a read that a leader left unanswered is asked anew, under another number.
  test("a read is asked again at the next leader, with a fresh number", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.hasQuorum = false;
    const asking = holdfast.inspect("a");
    await world.clock.advance(50);
    world.cluster.kill("n1");
    world.cluster.hasQuorum = true;
    world.cluster.elect("n2");
    assert.equal(await world.within(500, asking), null);
    const ids = world.cluster.received.flatMap(({ message }) => (message.kind === "query" ? [message.id] : []));
    assert.equal(new Set(ids).size, 2);
  });

  test("nobody answers: no_quorum after connectTimeoutMs", async () => {
    const world = new World();
    const holdfast = await world.connect({ connectTimeoutMs: 2_000 });
    world.cluster.hasQuorum = false;
    await assert.rejects(world.within(2_001, holdfast.inspect("a")), { code: "no_quorum" });
    assert.equal(world.clock.isKept, false);
  });

  test("status asks every endpoint, also one that is away", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.kill("n2");
    world.cluster.node("n3").reach = "silent";
    const reports = await world.within(1_501, holdfast.status({ timeoutMs: 1_500 }));
    const byEndpoint = new Map(reports.map((report) => [report.endpoint, report]));
    assert.equal(reports.length, 3);
    assert.equal(byEndpoint.get("node1:7000")?.status?.role, "leader");
    assert.equal(byEndpoint.get("node2:7000")?.error?.code, "unreachable");
    assert.equal(byEndpoint.get("node3:7000")?.error?.code, "unreachable");
    await world.clock.advance(5);
    assert.equal(world.network.socketCount, 1);
  });

  test("members, and a change of them", async () => {
    const world = new World();
    const holdfast = await world.connect();
    assert.deepEqual((await world.within(100, holdfast.members())).removed, ["n0"]);
    const member = { id: "n4", instance: "i", peer: "node4:7201", client: "node4:7000" };
    assert.ok((await world.within(100, holdfast.changeMembers({ add: [member], promote: ["n3"] }))) > 0);
    const sent = world.cluster.received.flatMap(({ message }) => (message.kind === "changeMembers" ? [message] : []));
    assert.deepEqual(
      { ...sent[0], id: 0 },
      {
        kind: "changeMembers",
        id: 0,
        add: [member],
        promote: ["n3"],
        remove: [],
        isForced: false,
      },
    );
  });

  test("a change that is refused says why and whom it is about; one that comes too early is asked again", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.refuseChange = () => ({ code: "change_refused", reason: "would_lose_quorum", members: ["n2", "n3"] });
    await assert.rejects(world.within(100, holdfast.changeMembers({ remove: ["n2"] })), (error: unknown) => {
      assert.ok(error instanceof ChangeRefusedError);
      assert.deepEqual([error.code, error.reason, error.retryable], ["change_refused", "would_lose_quorum", false]);
      assert.match(error.message, /no majority: n2, n3 not up/);
      return true;
    });
    let early = 2;
    world.cluster.refuseChange = () =>
      (early -= 1) >= 0 ? { code: "change_refused", reason: "not_ready", members: [] } : null;
    assert.ok((await world.within(1_000, holdfast.changeMembers({ remove: ["n2"] }))) > 0);
    assert.equal(early, -1);
  });

  test("whether a change took effect at a leader that is lost is not known", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.hasQuorum = false;
    const changing = outcomeOf(holdfast.changeMembers({ remove: ["n3"] }));
    await world.clock.advance(50);
    world.cluster.kill("n1");
    world.cluster.elect("n2");
    await world.clock.advance(500);
    assert.equal((changing.error as HoldfastError).code, "unknown_outcome");
  });

  test("a wrong change is refused by the argument's name", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const refused = (change: object, argument: string) =>
      assert.rejects(holdfast.changeMembers(change), { code: "invalid_argument", argument });
    await refused({ drop: ["n1"] }, "drop");
    await refused({ remove: "n1" }, "remove");
    await refused({ remove: [""] }, "remove");
    await refused({ add: [null] }, "add");
    await refused({ add: [{ id: "n4", instance: "i", peer: "x:1", client: "" }] }, "client");
    await refused({ force: 1 }, "force");
  });

  test("forceRelease ends the generation, and the old holder hears of it", async () => {
    const world = new World();
    const holdfast = await world.connect({ info: "root@host" });
    const lock = await world.within(100, holdfast.acquire("a"));
    const wrong = await world.within(100, holdfast.forceRelease("a", lock.token + 1));
    assert.deepEqual(wrong, { ended: 0, holders: 1 });
    const right = await world.within(100, holdfast.forceRelease("a", lock.token, { lockDelayMs: 5_000 }));
    assert.deepEqual(right, { ended: 1, holders: 0 });
    await world.clock.advance(5);
    assert.equal(lock.lossReason, "forced");
    assert.equal(await world.within(100, holdfast.tryAcquire("a")), null, "the lock-delay runs");
    const forced = world.cluster.applied.find(({ command }) => command.kind === "forceRelease")?.command;
    assert.equal(forced?.kind === "forceRelease" && forced.principal, "root@host");
  });

  test("a forceRelease whose leader is lost is not asked again: unknown_outcome", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.hasQuorum = false;
    const forcing = holdfast.forceRelease("a", lock.token);
    await world.clock.advance(10);
    world.cluster.kill("n1");
    world.cluster.hasQuorum = true;
    world.cluster.elect("n2");
    await assert.rejects(world.within(500, forcing), { code: "unknown_outcome", retryable: true });
    assert.equal(lock.state, "held");
  });

  test("finalizeUpgrade resolves with the cluster version, also when the leader that raised it could not say so", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.dropAnswer = (message) => message.kind === "finalized";
    const finalizing = holdfast.finalizeUpgrade();
    await world.clock.advance(10);
    world.cluster.dropAnswer = () => false;
    world.cluster.kill("n1");
    world.cluster.elect("n2");
    assert.equal(await world.within(500, finalizing), 2);
    assert.equal((await world.within(100, holdfast.status()))[1]?.status?.clusterVersion, 2);
  });

  test("transfer resolves with the new leader, and no lock is in jeopardy", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const leader = await world.within(100, holdfast.transfer("n3"));
    assert.equal(leader?.id, "n3");
    await world.clock.advance(20);
    assert.equal(lock.state, "held");
    // The answer may be lost with the old leader: then the new one says it.
    world.cluster.dropAnswer = (message) => message.kind === "transferred";
    assert.equal((await world.within(100, holdfast.transfer("n1")))?.id, "n1");
  });
});
