import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { TestContext } from "node:test";

import { InvalidArgumentError, KeysUnavailableError, sequencerKeys, SequencerError } from "../src/index.js";
import type { KeyList } from "../src/key-list.js";
import { keysOf } from "../src/sequencer.js";
import { RefreshedKeys } from "../src/sequencer-keys.js";
import { doc42, newSigner } from "./signing.js";
import type { Signer } from "./signing.js";

const first = newSigner();
const second = newSigner();
const third = newSigner();

/** Nodes in memory, and the time. A node without keys is down. */
class Cluster {
  nowMs = 0;
  readonly asked: string[] = [];
  readonly nodes: Record<string, { keys: readonly Signer[]; since: number } | null> = {};
  readonly keys: RefreshedKeys;

  constructor(...names: string[]) {
    const sources = names.map((name) => () => this.#list(name));
    this.keys = new RefreshedKeys({ refreshMsMin: 10_000, maxAgeMs: 600_000 }, { nowMs: () => this.nowMs, sources });
  }

  async #list(name: string): Promise<KeyList> {
    this.asked.push(name);
    const node = this.nodes[name] ?? null;
    if (node === null) throw new Error(`${name} is down`);
    return {
      ring: keysOf(
        node.keys.map(({ publicKey }) => publicKey),
        "keys",
      ),
      since: node.since,
    };
  }

  async reasonFor(sequencer: string): Promise<string> {
    try {
      await this.keys.verify(sequencer);
      return "verified";
    } catch (error) {
      if (error instanceof SequencerError) return error.reason;
      if (error instanceof KeysUnavailableError) return error.code;
      throw error;
    }
  }

  takeAsked(): string {
    return this.asked.splice(0).join(" ");
  }
}

test("keys are fetched once, and again for a key that isn't known, at most every so often", async () => {
  const cluster = new Cluster("n1");
  cluster.nodes["n1"] = { keys: [first], since: 5 };
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "verified");
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "verified");
  assert.equal(cluster.takeAsked(), "n1");
  cluster.nodes["n1"] = { keys: [second, first], since: 9 };
  assert.equal(await cluster.reasonFor(second.seal(doc42)), "unknown_key");
  cluster.nowMs = 9_999;
  assert.equal(await cluster.reasonFor(second.seal(doc42)), "unknown_key");
  assert.equal(cluster.takeAsked(), "", "too early");
  cluster.nowMs = 10_000;
  assert.equal(await cluster.reasonFor(second.seal(doc42)), "verified");
  assert.equal(await cluster.reasonFor(third.seal(doc42)), "unknown_key");
  assert.equal(cluster.takeAsked(), "n1");
});

test("what is malformed asks nobody", async () => {
  const cluster = new Cluster("n1");
  assert.equal(await cluster.reasonFor("holdfast1.x"), "malformed");
  await assert.rejects(cluster.keys.verify(7 as never), InvalidArgumentError);
  assert.equal(cluster.takeAsked(), "");
});

test("those who come together share one question", async () => {
  const cluster = new Cluster("n1");
  cluster.nodes["n1"] = { keys: [first], since: 5 };
  const sequencer = first.seal(doc42);
  const reasons = await Promise.all(Array.from({ length: 20 }, () => cluster.reasonFor(sequencer)));
  assert.deepEqual(new Set(reasons), new Set(["verified"]));
  assert.equal(cluster.takeAsked(), "n1");
});

test("a node that is down or lags is passed over, and the newest list counts", async () => {
  const cluster = new Cluster("n1", "n2", "n3");
  cluster.nodes["n2"] = { keys: [first], since: 5 };
  cluster.nodes["n3"] = { keys: [second, first], since: 9 };
  assert.equal(await cluster.reasonFor(second.seal(doc42)), "verified");
  assert.equal(cluster.takeAsked(), "n1 n2 n3");
  // A key that nobody knows: all are asked, and the list stays the newest one.
  cluster.nowMs = 10_000;
  assert.equal(await cluster.reasonFor(third.seal(doc42)), "unknown_key");
  assert.equal(cluster.takeAsked(), "n1 n2 n3");
  assert.equal(await cluster.reasonFor(second.seal(doc42)), "verified");
  // For its age: the lagging node's list doesn't do.
  cluster.nowMs = 700_000;
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "verified");
  await new Promise(setImmediate);
  assert.equal(cluster.takeAsked(), "n1 n2 n3");
  assert.equal(await cluster.reasonFor(second.seal(doc42)), "verified");
});

test("a key that the cluster has dropped is dropped, and nobody waits for that", async () => {
  const cluster = new Cluster("n1");
  cluster.nodes["n1"] = { keys: [first], since: 5 };
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "verified");
  cluster.nodes["n1"] = { keys: [second], since: 9 };
  cluster.nowMs = 600_001;
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "verified", "by the list at hand");
  await new Promise(setImmediate);
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "unknown_key");
});

test("without a cluster there is no verdict, and keys that are there go on", async () => {
  const cluster = new Cluster("n1", "n2");
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "unreachable");
  await assert.rejects(
    cluster.keys.verify(first.seal(doc42)),
    (error) => error instanceof KeysUnavailableError && error.retryable && /n2 is down/.test(String(error.cause)),
  );
  assert.equal(cluster.takeAsked(), "n1 n2");
  cluster.nodes["n2"] = { keys: [first], since: 5 };
  cluster.nowMs = 10_000;
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "verified");
  cluster.nodes["n2"] = null;
  cluster.nowMs = 2_000_000;
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "verified");
  await new Promise(setImmediate);
  assert.equal(await cluster.reasonFor(first.seal(doc42)), "verified");
});

test("given keys are all there is", async () => {
  const keys = sequencerKeys({ keys: [first.publicKey] });
  assert.equal((await keys.verify(first.seal(doc42))).token, 4711);
  await assert.rejects(keys.verify(second.seal(doc42)), SequencerError);
});

test("mistakes in the options are named", () => {
  const table: [unknown, string][] = [
    [undefined, "options"],
    [{}, "options"],
    [{ endpoints: "127.0.0.1:7101", keys: [] }, "options"],
    [{ endpoint: "127.0.0.1:7101" }, "options.endpoint"],
    [{ endpoints: [] }, "options.endpoints"],
    [{ endpoints: 7101 }, "options.endpoints"],
    [{ endpoints: "127.0.0.1:7101, http://x" }, "options.endpoints[1]"],
    [{ endpoints: ["127.0.0.1:99999"] }, "options.endpoints[0]"],
    [{ url: "locks.example/v1/keys" }, "options.url"],
    [{ url: "ftp://locks.example/v1/keys" }, "options.url"],
    [{ keys: {} }, "options.keys"],
    [{ keys: [{ id: "x", publicKey: "y" }] }, "options.keys[0].publicKey"],
    [{ endpoints: "a:1", refreshMsMin: 0 }, "options.refreshMsMin"],
    [{ endpoints: "a:1", refreshMsMin: 60_000, maxAgeMs: 59_999 }, "options.maxAgeMs"],
    [{ endpoints: "a:1", timeoutMs: Number.NaN }, "options.timeoutMs"],
  ];
  for (const [options, argument] of table) {
    assert.throws(
      () => sequencerKeys(options as never),
      (error) => error instanceof InvalidArgumentError && error.argument === argument,
      JSON.stringify(options),
    );
  }
  assert.doesNotThrow(() => sequencerKeys({ endpoints: "[::1]:7101,n2.example:7102", refreshMsMin: 3_600_000 }));
});

async function serverWith(context: TestContext, answer: (response: ServerResponse) => void): Promise<string> {
  const server: Server = createServer((request, response) => {
    assert.equal(request.url, "/v1/keys");
    answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("the list comes over HTTP, from the first node that has a good one", async (context) => {
  const answers: ((response: ServerResponse) => void)[] = [
    (response) => response.writeHead(503).end("{}"),
    (response) => response.end("no JSON"),
    (response) => response.end("null"),
    (response) => response.end('{"keys":[{"id":"0","publicKey":"x"}]}'),
    (response) => response.end("x".repeat(100_000)),
    (response) => response.writeHead(302, { location: "/elsewhere" }).end(),
    (response) => response.destroy(),
    () => {},
    (response) => response.end(JSON.stringify({ keys: [{ ...first.publicKey, since: 5, isCurrent: true }] })),
  ];
  const endpoints = await Promise.all(answers.map((answer) => serverWith(context, answer)));
  const all = sequencerKeys({ endpoints, timeoutMs: 3_000 });
  assert.equal((await all.verify(first.seal(doc42))).resource, "doc:42");
  const last = endpoints.at(-1) ?? "";
  assert.equal((await sequencerKeys({ url: `http://${last}/v1/keys` }).verify(first.seal(doc42))).token, 4711);

  const problems = [
    /HTTP status 503/,
    /JSON/,
    /no list of keys/,
    /keys\[0\]/,
    /more than/,
    /302/,
    /hang up|ECONNRESET/,
    /within/,
  ];
  for (const [at, problem] of problems.entries()) {
    const keys = sequencerKeys({
      endpoints: endpoints[at] ?? "",
      timeoutMs: problem.source === "within" ? 100 : 30_000,
    });
    await assert.rejects(
      keys.verify(first.seal(doc42)),
      (error) => error instanceof KeysUnavailableError && problem.test(String(error.cause)),
      String(problem),
    );
  }
});
