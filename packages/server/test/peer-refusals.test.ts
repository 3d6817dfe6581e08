import { strict as assert } from "node:assert";
import { afterEach, describe, test } from "node:test";
import type { Term } from "@holdfast/raft";
import { limits } from "@holdfast/wire";
import type { PeerHello } from "@holdfast/wire";
import { configurationOf, freePorts, sleep, until } from "./helpers.js";
import { allFormed, instanceOf } from "./peer-harness.js";
import type { noPromises } from "./peer-harness.js";
import { call, endAll, helloFrom, start, startUnformed } from "./raw-peers.js";

afterEach(endAll);

describe("a hello is refused", () => {
  test("with another cluster's name, by both", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
    const b = await start({ id: "n2", port: p2, peers: { n1: p1 }, cluster: "other" });
    await until(() => a.refusals.length > 0 && b.refusals.length > 0, "both told");
    assert.deepEqual(
      [a.refusals[0]?.refusal, b.refusals[0]?.refusal.code, b.refusals[0]?.isPeerFormed],
      [
        { from: "n2", code: "wrong_cluster", problem: 'n2 belongs to cluster "other", not "test"' },
        "wrong_cluster",
        true,
      ],
    );
    assert.equal(a.links.met().size, 0);
  });

  test("with another cluster id, by both", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
    const b = await start({ id: "n2", port: p2, peers: { n1: p1 } }, { ...allFormed, clusterId: "d".repeat(32) });
    await until(() => a.refusals.length > 0 && b.refusals.length > 0, "both told");
    assert.deepEqual([a.refusals[0]?.refusal.code, b.refusals[0]?.refusal.code], ["wrong_cluster", "wrong_cluster"]);
  });

  test("with a wiped directory: only the wiped node is at fault", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2 } });
    const b = await startUnformed({ id: "n2", port: p2, peers: { n1: p1 }, instance: "fresh" });
    await until(() => b.refusals.length > 0, "told");
    assert.deepEqual(b.refusals[0], {
      refusal: {
        from: "n1",
        code: "wrong_instance",
        problem: "the cluster knows n2 with another data directory (instance instance-n2, not fresh), says n1",
      },
      isPeerFormed: true,
    });
    await sleep(100);
    assert.deepEqual([a.refusals, b.formed], [[], []]);
  });

  test("from a node that the configuration doesn't have, or has removed", async () => {
    const [p1 = 0, p2 = 0] = await freePorts(2);
    const withoutTwo = { ...configurationOf({ n1: instanceOf("n1"), n3: instanceOf("n3") }), removed: ["n3"] };
    await start({ id: "n1", port: p1, peers: { n2: p2 } }, { ...allFormed, configuration: withoutTwo });
    const b = await startUnformed({ id: "n2", port: p2, peers: { n1: p1 } });
    await until(() => b.refusals.length > 0, "told");
    assert.deepEqual(b.refusals[0]?.refusal, {
      from: "n1",
      code: "unknown_node",
      problem: "the cluster has no node n2",
    });
    const caller = await call(p1, 1);
    caller.send(helloFrom("n3"));
    await until(() => caller.frames.length === 2, "hello and refusal");
    assert.deepEqual(caller.frames[1], {
      kind: "refused",
      code: "removed",
      problem: "n3 was removed from this cluster, and an id never comes back",
    });
  });

  test("at an address where another node answers", async () => {
    const [p1 = 0, p3 = 0] = await freePorts(2);
    const a = await startUnformed({ id: "n1", port: p1, peers: { n2: p3, n3: 1 } });
    await startUnformed({ id: "n3", port: p3, peers: { n1: p1, n2: 1 } });
    await until(() => a.log.some(({ text }) => text.includes("refused n3")), "said");
    await until(() => a.refusals.length > 0, "told");
    for (const { refusal } of a.refusals) assert.equal(refusal.code, "wrong_address");
  });

  test("with another protocol version", async () => {
    const [p1 = 0] = await freePorts(1);
    await start({ id: "n1", port: p1, peers: { n2: 1 } });
    const caller = await call(p1, 1);
    caller.send(helloFrom("n2", { protocol: 99 }));
    await until(() => caller.closed.code !== null, "closed");
    assert.deepEqual(
      caller.frames.map((frame) => frame.kind),
      ["hello", "refused"],
    );
    assert.deepEqual(caller.frames[1], {
      kind: "refused",
      code: "incompatible",
      problem: `n1 speaks peer protocol ${limits.protocolVersion}, not 99`,
    });
  });

  test("from a release that can't run the version that the cluster has reached, and only then", async () => {
    const [p1 = 0, p2 = 0, p3 = 0] = await freePorts(3);
    let version = 1;
    const setup = { id: "n1", port: p1, peers: { n2: p2, n3: p3 }, versions: { min: 1, max: 2 } };
    const a = await start({ ...setup, clusterVersion: () => version });
    await start({ id: "n2", port: p2, peers: { n1: p1 }, versions: { min: 1, max: 1 } });
    await until(() => a.links.met().has("n2"), "both run the first version");
    assert.deepEqual(a.links.met().get("n2")?.versions, { min: 1, max: 1 });
    version = 2;
    const older = await call(p1, 1);
    older.send(helloFrom("n3"));
    await until(() => older.frames.length === 2, "hello and refusal");
    assert.deepEqual(older.frames[1], {
      kind: "refused",
      code: "wrong_version",
      problem:
        "the cluster is at version 2, and n3 runs version 1 at most: start the newer release again, the upgrade to it was finalized",
    });
    const newer = await start({ id: "n3", port: p3, peers: { n1: p1 }, versions: { min: 2, max: 3 } });
    await until(() => a.links.met().has("n3") && newer.links.met().has("n1"), "it can run it");
    assert.deepEqual(a.links.met().get("n3")?.versions, { min: 2, max: 3 });
  });

  test("with another secret, before anything is said", async () => {
    const [p1 = 0, p2 = 0, p3 = 0] = await freePorts(3);
    const a = await start({ id: "n1", port: p1, peers: { n2: p2, n3: p3 }, secret: "right" });
    const b = await start({ id: "n2", port: p2, peers: { n1: p1 }, secret: "wrong" });
    await start({ id: "n3", port: p3, peers: { n1: p1 }, secret: "right" });
    await until(() => a.refusals.length > 0 && b.refusals.length > 0, "both told");
    assert.deepEqual(b.refusals[0], {
      refusal: { from: "n1", code: "unauthorized", problem: "the cluster secrets differ" },
      isPeerFormed: false,
    });
    await assert.rejects(call(p1, 1), /401/);
    await until(() => a.links.met().has("n3"), "the right one is let in");
    assert.ok(!a.links.met().has("n2"));
  });

  test("from an old copy of a directory", async () => {
    const [p1 = 0] = await freePorts(1);
    const a = await start({ id: "n1", port: p1, peers: { n2: 1 } });
    const refusalOf = async (hello: PeerHello, process: string): Promise<string | null> => {
      const caller = await call(p1, 1, "control", process.repeat(32));
      caller.send(hello);
      await until(() => caller.frames.length > 0, "an answer");
      await sleep(20);
      caller.socket.terminate();
      const refused = caller.frames.find((frame) => frame.kind === "refused");
      return refused?.kind === "refused" ? `${refused.code}: ${refused.problem.replace(/^.*old copy: /, "")}` : null;
    };
    const last = (term: number, index: number) => ({ term, index }) as typeof noPromises.last;
    assert.equal(await refusalOf(helloFrom("n2", { boot: 5, term: 3, last: last(3, 10) }), "a"), null);
    a.links.notePromise("n2", { term: 3, last: last(3, 40) });
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 5, term: 3, last: last(3, 10) }), "a"),
      null,
      "the same process again",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 4, term: 3, last: last(3, 40) }), "b"),
      "old_copy: this is its start 4, and start 5 was seen before",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 5, term: 3, last: last(3, 40) }), "b"),
      "old_copy: two processes run as its start 5: one of them has a copy of the directory",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 6, term: 2, last: last(2, 90) }), "b"),
      "old_copy: its term is 2, and it has promised 3",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 6, term: 3, last: last(3, 39) }), "b"),
      "old_copy: its log ends at index 39, and it has promised index 40",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 6, term: null, last: null, clusterId: null }), "b"),
      "old_copy: it was formed before, and now it isn't",
    );
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 6, term: 4, last: last(3, 20) }), "b"),
      null,
      "a later leader may have cut its tail",
    );
    assert.equal(await refusalOf(helloFrom("n2", { boot: 7, term: 4, last: last(4, 60) }), "c"), null);
    const voter = await call(p1, 1, "control", "d".repeat(32));
    voter.send(helloFrom("n2", { boot: 8, term: 4, last: last(4, 60) }));
    voter.send({ kind: "raft", messages: [{ kind: "voteAnswer", term: 9 as Term, granted: true }] });
    await until(() => a.received.length === 1, "a vote");
    assert.equal(
      await refusalOf(helloFrom("n2", { boot: 9, term: 8, last: last(4, 60) }), "e"),
      "old_copy: its term is 8, and it has promised 9",
    );
  });
});
