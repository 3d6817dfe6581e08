/** Sequencers: signed for a hold on demand, and checked. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseSequencer, sealSequencer } from "@holdfast/wire";
import { InvalidArgumentError, LockLostError } from "../src/errors.js";
import type { Holdfast } from "../src/holdfast.js";
import { setKey } from "./world/fake-keys.js";
import { outcomeOf, World } from "./world/world.js";

async function worldWithKey(): Promise<{ readonly world: World; readonly holdfast: Holdfast; readonly key: string }> {
  const world = new World();
  const key = setKey(world.cluster);
  return { world, holdfast: await world.connect(), key };
}

describe("lock.sequencer", () => {
  test("says what the lock is, and nothing is asked for unless it is called", async () => {
    const { world, holdfast, key } = await worldWithKey();
    const lock = await world.within(100, holdfast.acquire("doc:42"));
    assert.ok(world.cluster.received.every(({ message }) => message.kind !== "query"));
    const { keyId, name, mode, slot, token } = parseSequencer(await world.within(100, lock.sequencer()));
    assert.deepEqual([keyId, name, mode, slot, token], [key, "doc:42", "exclusive", null, lock.token]);
    assert.equal(world.clock.isKept, false);
  });

  test("of each name, and of a slot", async () => {
    const { world, holdfast } = await worldWithKey();
    const both = await world.within(100, holdfast.acquire(["a", "b"], { mode: "shared" }));
    await assert.rejects(both.sequencer(), InvalidArgumentError);
    await assert.rejects(both.sequencer("c"), InvalidArgumentError);
    const { name, mode, token } = parseSequencer(await world.within(100, both.sequencer("b")));
    assert.deepEqual([name, mode, token], ["b", "shared", both.fence("b").token]);
    const gpu = await world.within(100, holdfast.semaphore("gpu", { slots: 2 }).acquire());
    const sequencer = parseSequencer(await world.within(100, gpu.sequencer()));
    assert.deepEqual([sequencer.mode, sequencer.slot, sequencer.token], ["slot", gpu.slot, gpu.token]);
  });

  test("of a term of an election", async () => {
    const { world, holdfast } = await worldWithKey();
    const leading = holdfast.lead("scheduler", (term) => term.sequencer());
    assert.equal(parseSequencer(await world.within(100, leading)).name, "scheduler");
  });

  test("is asked for again at the next leader", async () => {
    const { world, holdfast } = await worldWithKey();
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.hasQuorum = false;
    const asking = lock.sequencer();
    await world.clock.advance(50);
    world.cluster.kill("n1");
    world.cluster.hasQuorum = true;
    world.cluster.elect("n2");
    assert.equal(parseSequencer(await world.within(500, asking)).token, lock.token);
  });

  test("not of a lock that is lost or released, whether that is known before or comes between", async () => {
    const { world, holdfast } = await worldWithKey();
    const released = await world.within(100, holdfast.acquire("a"));
    await world.within(100, released.release());
    await assert.rejects(released.sequencer(), { code: "already_released" });

    const forced = await world.within(100, holdfast.acquire("b"));
    const force = { kind: "forceRelease", name: "b", token: forced.token, principal: "ada", lockDelayMs: 0 } as const;
    const asking = forced.sequencer();
    world.cluster.apply(force);
    await assert.rejects(
      world.within(100, asking),
      (error) => error instanceof LockLostError && error.reason === "forced",
    );
    await assert.rejects(forced.sequencer(), { code: "lock_lost" });

    // The cluster knows no such hold, and has not said so before.
    const unknown = await world.within(100, holdfast.acquire("c"));
    world.cluster.dropAnswer = ({ kind }) => kind === "outcome";
    world.cluster.apply({ ...force, name: "c", token: unknown.token });
    await assert.rejects(world.within(100, unknown.sequencer()), { code: "lock_lost", reason: "session_gone" });
  });
});

describe("check", () => {
  test("whether a holding goes on", async () => {
    const { world, holdfast } = await worldWithKey();
    const lock = await world.within(100, holdfast.acquire("doc:42"));
    const sequencer = await world.within(100, lock.sequencer());
    const { token } = lock;
    const claim = { resource: "doc:42", name: "doc:42", mode: "exclusive", slot: null, token };
    const current = { isCurrent: true, reason: null, claim, currentToken: token };
    assert.deepEqual(await world.within(100, holdfast.check(sequencer)), current);
    await world.within(100, lock.release());
    const over = { isCurrent: false, reason: "over", claim, currentToken: null };
    assert.deepEqual(await world.within(100, holdfast.check(sequencer)), over);
    const next = await world.within(100, holdfast.acquire("doc:42"));
    const passed = { ...over, currentToken: next.token };
    assert.deepEqual(await world.within(100, holdfast.check(sequencer)), passed);
  });

  test("a slot is told from the others", async () => {
    const { world, holdfast } = await worldWithKey();
    const gpu = holdfast.semaphore("gpu", { slots: 2 });
    const [first, second] = [await world.within(100, gpu.acquire()), await world.within(100, gpu.acquire())];
    const sequencer = await world.within(100, first.sequencer());
    await world.within(100, first.release());
    const { claim, isCurrent, currentToken } = await world.within(100, holdfast.check(sequencer));
    assert.deepEqual([claim?.resource, isCurrent, currentToken], ["gpu#0", false, null]);
    const other = await world.within(100, holdfast.check(await world.within(100, second.sequencer())));
    assert.deepEqual([other.claim?.resource, other.isCurrent], ["gpu#1", true]);
  });

  test("what can't be trusted gets an answer that says nothing of the lock", async () => {
    const { world, holdfast } = await worldWithKey();
    const lock = await world.within(100, holdfast.acquire("a"));
    const sequencer = await world.within(100, lock.sequencer());
    const { signed, keyId } = parseSequencer(sequencer);
    const nothing = { isCurrent: false, claim: null, currentToken: null };
    const forged = await world.within(100, holdfast.check(sealSequencer(signed, new Uint8Array(64))));
    assert.deepEqual(forged, { ...nothing, reason: "forged" });
    const unknown = await world.within(100, holdfast.check(sequencer.replace(keyId, "0".repeat(16))));
    assert.deepEqual(unknown, { ...nothing, reason: "unknown_key" });
    const asked = world.cluster.received.length;
    for (const text of ["", "holdfast1", `${sequencer}.x`, `\u0000${sequencer}`, "x".repeat(10_000)]) {
      assert.deepEqual(await world.within(100, holdfast.check(text)), { ...nothing, reason: "malformed" }, text);
    }
    assert.equal(world.cluster.received.length, asked, "nobody was asked");
    for (const odd of [undefined, null, 7, {}]) {
      await assert.rejects(holdfast.check(odd as never), { code: "invalid_argument", argument: "sequencer" });
    }
  });
});

describe("keys", () => {
  test("are told, and replaced; what was signed before is still good", async () => {
    const { world, holdfast, key } = await worldWithKey();
    const lock = await world.within(100, holdfast.acquire("a"));
    const sequencer = await world.within(100, lock.sequencer());
    const next = await world.within(100, holdfast.rotateKey({ principal: "ada" }));
    const keys = await world.within(100, holdfast.publicKeys());
    assert.deepEqual(
      keys.map(({ id }) => id),
      [next, key],
    );
    assert.equal((await world.within(100, holdfast.check(sequencer))).isCurrent, true);
    assert.equal(parseSequencer(await world.within(100, lock.sequencer())).keyId, next);
    const principals = world.cluster.applied.flatMap(({ command }) =>
      command.kind === "setSigningKey" ? [command.principal] : [],
    );
    assert.deepEqual(principals, ["", "ada"]);
    await world.within(100, holdfast.rotateKey());
    assert.equal(world.cluster.applied.at(-1)?.command.kind, "setSigningKey");
    await assert.rejects(holdfast.rotateKey({ principal: "x".repeat(257) }), { argument: "principal" });
    await assert.rejects(holdfast.rotateKey({ by: "ada" } as never), { code: "invalid_argument", argument: "by" });
  });

  test("a rotation is not repeated: when the leader is lost its outcome isn't known", async () => {
    const { world, holdfast } = await worldWithKey();
    world.cluster.hasQuorum = false;
    const rotating = outcomeOf(holdfast.rotateKey());
    await world.clock.advance(50);
    world.cluster.kill("n1");
    world.cluster.hasQuorum = true;
    world.cluster.elect("n2");
    await world.clock.advance(1_000);
    assert.equal((rotating.error as { code?: string }).code, "unknown_outcome");
  });
});

describe("a cluster that signs nothing", () => {
  test("a release that knows no sequencers is asked for none", async () => {
    const world = new World();
    world.cluster.features = ["nodes", "watch"];
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const sequencer = `holdfast1.${"0".repeat(16)}.YQ.exclusive.-.1.${"A".repeat(86)}`;
    await assert.rejects(world.within(100, lock.sequencer()), { code: "incompatible" });
    await assert.rejects(world.within(100, holdfast.check(sequencer)), { code: "incompatible" });
    await assert.rejects(world.within(100, holdfast.publicKeys()), { code: "incompatible" });
    await assert.rejects(world.within(100, holdfast.rotateKey()), { code: "incompatible" });
    assert.ok(world.cluster.received.every(({ message }) => message.kind !== "query" && message.kind !== "rotateKey"));
    assert.equal(lock.state, "held");
    assert.equal(world.clock.isKept, false);
  });

  test("a version that has no keys: refused, and the lock is held as before", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    await assert.rejects(world.within(100, lock.sequencer()), { code: "incompatible" });
    assert.deepEqual(await world.within(100, holdfast.publicKeys()), []);
    assert.equal(lock.state, "held");
  });
});
