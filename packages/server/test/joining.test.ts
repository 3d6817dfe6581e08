import { strict as assert } from "node:assert";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { clusterFactsOf, exclusionIn, prepareJoin, watchCluster } from "../src/joining.js";
import type { ClusterFacts, JoinOptions } from "../src/joining.js";
import { memoryLogger } from "./helpers.js";
import { configOf, newDirectory } from "./node-harness.js";

function optionsFor(changes: Partial<JoinOptions> = {}): JoinOptions {
  return {
    nodeId: "n4",
    dataDirectory: newDirectory(),
    endpoints: ["a:1", "b:2"],
    peer: "127.0.0.1:7204",
    client: "127.0.0.1:7104",
    environment: {},
    ...changes,
  };
}

const committed = {
  voters: [{ id: "n1", instance: "i1", peer: "127.0.0.1:7201", client: "127.0.0.1:7101" }],
  outgoing: [],
  learners: [],
  removed: [],
};

async function factsOf(changes: Partial<ClusterFacts> = {}): Promise<ClusterFacts> {
  const config = await configOf(3, { timing: { electionTimeoutMs: 700 }, limits: { snapshotEntries: 77 } });
  return { ...(JSON.parse(JSON.stringify(clusterFactsOf(config, "c", committed))) as ClusterFacts), ...changes };
}

function partsFor(ask: (endpoint: string) => Promise<ClusterFacts>, stop = new AbortController()) {
  const logger = memoryLogger();
  return { logger, stop: stop.signal, ask };
}

const nobody = (): Promise<never> => Promise.reject(new Error("nobody is asked"));

describe("a node that joins", () => {
  test("runs with the cluster's settings and its own addresses, and knows them when nobody answers", async () => {
    const options = optionsFor();
    const facts = await factsOf();
    const asked: string[] = [];
    const joining = await prepareJoin(
      options,
      partsFor((endpoint) => {
        asked.push(endpoint);
        return endpoint === "a:1" ? Promise.reject(new Error("down")) : Promise.resolve(facts);
      }),
    );
    assert.deepEqual(asked, ["a:1", "b:2"]);
    assert.ok(joining !== null && "clusterId" in joining);
    const { config, clusterId } = joining;
    assert.equal(clusterId, "c");
    assert.deepEqual(
      [config.cluster, config.timing.electionTimeoutMs, config.limits.snapshotEntries],
      ["test", 700, 77],
    );
    assert.deepEqual(
      config.nodes.map(({ id, peer, client }) => [id, peer, client]),
      [["n4", "127.0.0.1:7204", "127.0.0.1:7104"]],
    );
    const again = await prepareJoin(options, partsFor(nobody));
    assert.deepEqual(again, joining);
    const loud = await prepareJoin({ ...options, environment: { HOLDFAST_LOG: "debug" } }, partsFor(nobody));
    assert.ok(loud !== null && "config" in loud && loud.config.logLevel === "debug");
  });

  test("passes over settings of a newer release", async () => {
    const facts = await factsOf();
    const newer = { ...facts, limits: { ...facts.limits, somethingNew: 5 } };
    const joining = await prepareJoin(
      optionsFor(),
      partsFor(() => Promise.resolve(newer)),
    );
    assert.ok(joining !== null && "config" in joining);
  });

  test("asks until somebody answers, says once what is wrong, and stops when it is told to", async () => {
    const stop = new AbortController();
    let asked = 0;
    const parts = partsFor(() => {
      asked += 1;
      if (asked === 4) stop.abort();
      return Promise.reject(new Error("connect ECONNREFUSED"));
    }, stop);
    assert.equal(await prepareJoin(optionsFor(), parts), null);
    assert.deepEqual(
      parts.logger.lines.map(({ text }) => text),
      ["no node of the cluster answers: a:1: connect ECONNREFUSED; b:2: connect ECONNREFUSED"],
    );
  });

  test("ends when its id was removed, or its directory was begun otherwise", async () => {
    const removed = await factsOf({ removed: ["n4"] });
    const ending = await prepareJoin(
      optionsFor(),
      partsFor(() => Promise.resolve(removed)),
    );
    assert.ok(ending !== null && "exit" in ending);
    assert.equal(ending.exit, "removed");
    const options = optionsFor();
    const facts = await factsOf();
    await prepareJoin(
      options,
      partsFor(() => Promise.resolve(facts)),
    );
    for (const changes of [{ nodeId: "n5" }, { peer: "127.0.0.1:1" }, { client: "127.0.0.1:1" }]) {
      const other = await prepareJoin({ ...options, ...changes }, partsFor(nobody));
      assert.ok(other !== null && "exit" in other && other.exit === "usage");
      assert.match(other.sentence ?? "", /begun as n4 with --peer 127.0.0.1:7204.*never added, empty the directory/);
    }
    const file = join(options.dataDirectory, "joined.json");
    writeFileSync(file, readFileSync(file, "utf8").slice(0, 40));
    const damaged = await prepareJoin(options, partsFor(nobody));
    assert.ok(damaged !== null && "exit" in damaged && /can't be read/.test(damaged.sentence ?? ""));
  });

  test("hears that it was removed, or that its place was taken; and nothing of the kind while it may be added", async () => {
    const own = { id: "n4", instance: "i4" };
    assert.equal(exclusionIn(await factsOf(), own), null);
    assert.equal(exclusionIn(await factsOf({ members: [own] }), own), null);
    const both = [{ id: "n4", instance: "other" }, own];
    assert.equal(exclusionIn(await factsOf({ members: both }), own), null, "one takes the other's place");
    assert.equal(exclusionIn(await factsOf({ removed: ["n4"] }), own)?.exit, "removed");
    const replaced = exclusionIn(await factsOf({ members: [{ id: "n4", instance: "other" }] }), own);
    assert.equal(replaced?.exit, "wrongInstance");
    assert.match(replaced.sentence ?? "", /n4 with another data directory \(instance other, not i4\)/);
  });

  test("asks all on while it waits, and listens to its own cluster only", async () => {
    const facts = await factsOf();
    const heard: ClusterFacts[] = [];
    const node = { isWaiting: true, hearOfCluster: (told: ClusterFacts) => void heard.push(told) };
    const asked: string[] = [];
    const parts = partsFor((endpoint) => {
      asked.push(endpoint);
      if (asked.length === 6) node.isWaiting = false;
      if (endpoint === "down:1") return Promise.reject(new Error("down"));
      return Promise.resolve(endpoint === "stray:1" ? { ...facts, clusterId: "another" } : facts);
    });
    await watchCluster({ endpoints: ["down:1", "stray:1", "a:1"], clusterId: "c" }, parts, node);
    assert.equal(asked.length, 6);
    assert.deepEqual(heard, [facts], "what comes when it waits no more is of no interest");
  });

  test("listens where it is told to, at each start anew, and is known by its advertised addresses", async () => {
    const options = optionsFor();
    const facts = await factsOf();
    const listenOf = async (listen: NonNullable<JoinOptions["listen"]>): Promise<unknown> => {
      const joining = await prepareJoin(
        { ...options, listen },
        partsFor(() => Promise.resolve(facts)),
      );
      if (joining === null || !("config" in joining)) return joining?.sentence;
      const [own] = joining.config.nodes;
      assert.deepEqual([own?.peer, own?.client], [options.peer, options.client]);
      return [own?.listen.peer, own?.listen.client];
    };
    const own = { host: "127.0.0.1", port: 7204 };
    const all = (port: number): object => ({ host: "0.0.0.0", port });
    assert.deepEqual(await listenOf({ peer: "0.0.0.0:7204", client: "0.0.0.0:7104" }), [all(7204), all(7104)]);
    assert.deepEqual(await listenOf({ client: "0.0.0.0:9" }), [own, all(9)]);
    assert.deepEqual(await listenOf({}), [own, { host: "127.0.0.1", port: 7104 }]);
    assert.match(String(await listenOf({ client: options.peer })), /is this node's peer listener too/);
  });

  test("begins in an empty directory alone: neither among files of others, nor with what it promised another cluster", async () => {
    for (const name of ["notes.txt", "identity"]) {
      const options = optionsFor();
      mkdirSync(options.dataDirectory);
      writeFileSync(join(options.dataDirectory, name), "kept");
      const ending = await prepareJoin(options, partsFor(nobody));
      assert.ok(ending !== null && "exit" in ending && ending.exit === "usage");
      assert.match(ending.sentence ?? "", new RegExp(`is not empty: it has ${name}; a node that joins begins`));
      assert.deepEqual(readdirSync(options.dataDirectory), [name]);
    }
    const options = optionsFor();
    const facts = await factsOf();
    // A file system of its own, and a first start that was cut off.
    mkdirSync(join(options.dataDirectory, "lost+found"), { recursive: true });
    writeFileSync(join(options.dataDirectory, "joined.json.tmp"), "{");
    const joining = await prepareJoin(
      options,
      partsFor(() => Promise.resolve(facts)),
    );
    assert.ok(joining !== null && "clusterId" in joining);
    assert.deepEqual(readdirSync(options.dataDirectory).sort(), ["joined.json", "lost+found"]);
  });

  test("keeps nothing of an answer that makes no sense", async () => {
    const facts = await factsOf({ timing: { heartbeatMs: -1 } });
    const options = optionsFor();
    const ending = await prepareJoin(
      options,
      partsFor(() => Promise.resolve(facts)),
    );
    assert.ok(ending !== null && "exit" in ending);
    assert.match(ending.sentence ?? "", /timing.heartbeatMs/);
    assert.throws(() => readFileSync(join(options.dataDirectory, "joined.json")));
  });
});
