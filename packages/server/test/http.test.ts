import { strict as assert } from "node:assert";
import { request } from "node:http";
import type { IncomingHttpHeaders, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { after, before, describe, test } from "node:test";
import { BackupRefusedError } from "../src/backup-taking.js";
import { checkupFrom } from "../src/checkup.js";
import type { CheckupAnswer } from "../src/checkup.js";
import { parseConfig } from "../src/config.js";
import { askForCluster } from "../src/joining.js";
import type { ClusterFacts, NodeIdentity } from "../src/joining.js";
import type { Health, KeyAnswer } from "../src/node-routes.js";
import { serverFor } from "./http-harness.js";

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const nodes = ["n1", "n2", "n3"].map((id, at) => ({ id, peer: `10.0.0.${at}:1`, client: `10.0.0.${at}:2` }));
const checkup = checkupFrom({
  config: parseConfig(JSON.stringify({ cluster: "test", nodes }), "cluster.json"),
  nodeId: "n1",
  release: "1.2.3",
  dataDirectory: tmpdir(),
  instance: "5f0c",
  boot: 7,
  uptimeMs: 10.4,
  health: { isLive: true, isReady: false, problem: "the cluster is not formed yet" },
  status: null,
  host: null,
  refusedBeginning: null,
  linked: new Set(["n3"]),
  connections: 2,
});

describe("plain HTTP on the client port", () => {
  let server: Server;
  let port = 0;
  let health: Health = { isLive: true, isReady: true, problem: null };
  let status: object | null = null;
  let identity: NodeIdentity | null = null;
  let cluster: ClusterFacts | null = null;
  let keys: KeyAnswer | null = null;
  let figures: () => Promise<string> = () => Promise.resolve("holdfast_raft_term 1\n");

  before(async () => {
    const options = { origins: ["https://tool.example"], hosts: ["locks.example"], isLoopbackOnly: true };
    server = serverFor(options, {
      health: () => health,
      status: () => status,
      identity: () => identity,
      cluster: () => cluster,
      keys: () => keys,
      clock: () => ({ boot: 7, monotonicMs: 1_234.5 }),
      checkup: () => checkup,
      metrics: async () => ({ contentType: "text/plain; version=0.0.4", text: await figures() }),
      backup: () => Promise.reject(new BackupRefusedError("not_ready", "not here")),
      hasSession: () => false,
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  /** Each on a connection of its own: a kept one may be closed by the server just when it is used again. */
  function ask(path: string, headers: Record<string, string> = {}, method = "GET", body = ""): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const asked = request({ host: "127.0.0.1", port, path, method, headers, agent: false }, (response) => {
        let text = "";
        response.on("data", (data: Buffer) => (text += data.toString()));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      });
      asked.on("error", reject);
      asked.end(body);
    });
  }

  function problemIn(answer: Answer): { readonly status: number; readonly title: string; readonly detail: string } {
    assert.equal(answer.headers["content-type"], "application/problem+json");
    const problem = JSON.parse(answer.text) as { type: string; status: number; title: string; detail: string };
    assert.equal(problem.type, "about:blank");
    assert.equal(problem.status, answer.status);
    return problem;
  }

  test("/livez and /readyz", async () => {
    health = { isLive: true, isReady: true, problem: null };
    for (const path of ["/livez", "/readyz", "/readyz?verbose"]) {
      const answer = await ask(path);
      assert.deepEqual([answer.status, JSON.parse(answer.text)], [200, { status: "ok" }], path);
      assert.equal(answer.headers["cache-control"], "no-store");
    }
    health = { isLive: true, isReady: false, problem: "no leader is known" };
    assert.equal((await ask("/livez")).status, 200);
    const notReady = await ask("/readyz");
    assert.equal(notReady.status, 503);
    assert.equal(problemIn(notReady).detail, "no leader is known");
    health = { isLive: false, isReady: false, problem: "the node is stopping" };
    assert.equal((await ask("/livez")).status, 503);
  });

  test("/metrics, and what happens when they fail", async () => {
    const answer = await ask("/metrics");
    assert.deepEqual(
      [answer.status, answer.headers["content-type"], answer.text],
      [200, "text/plain; version=0.0.4", "holdfast_raft_term 1\n"],
    );
    figures = () => Promise.reject(new Error("inner secret"));
    const failed = await ask("/metrics");
    assert.equal(failed.status, 500);
    assert.doesNotMatch(problemIn(failed).detail, /secret/);
  });

  test("/v1/status", async () => {
    health = { isLive: true, isReady: false, problem: "the cluster is not formed yet" };
    status = null;
    assert.equal(problemIn(await ask("/v1/status")).detail, "the cluster is not formed yet");
    status = { id: "n1", role: "leader" };
    assert.deepEqual(JSON.parse((await ask("/v1/status")).text), { id: "n1", role: "leader" });
  });

  test("/v1/keys: what sequencers are verified with, also of a node that isn't ready", async () => {
    health = { isLive: true, isReady: false, problem: "the cluster is not formed yet" };
    assert.deepEqual(problemIn(await ask("/v1/keys")).detail, "the cluster is not formed yet");
    keys = { keys: [] };
    assert.deepEqual(JSON.parse((await ask("/v1/keys")).text), keys);
    keys = { keys: [{ id: "21fe31dfa154a261", publicKey: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", since: 4 }] };
    const answer = await ask("/v1/keys");
    assert.equal(answer.headers["content-type"], "application/json");
    assert.deepEqual(JSON.parse(answer.text), keys);
  });

  test("/v1/identity and /v1/cluster: for a node that joins, and whoever adds it", async () => {
    health = { isLive: true, isReady: false, problem: "n4 waits to be added" };
    for (const path of ["/v1/identity", "/v1/cluster"]) {
      const answer = await ask(path);
      assert.deepEqual([answer.status, problemIn(answer).detail], [503, "n4 waits to be added"]);
    }
    const { signal: stop } = new AbortController();
    identity = { id: "n4", instance: "i", peer: "a:1", client: "a:2", clusterId: null };
    const members = [{ id: "n1", instance: "i" }];
    cluster = { cluster: "test", clusterId: "c", timing: { heartbeatMs: 100 }, limits: {}, removed: ["n3"], members };
    assert.deepEqual(JSON.parse((await ask("/v1/identity")).text), identity);
    assert.deepEqual(JSON.parse((await ask("/v1/cluster")).text), cluster);
    const asked = await askForCluster(`127.0.0.1:${port}`, stop);
    assert.deepEqual(asked, cluster);
    const { members: _, ...older } = cluster;
    cluster = older as ClusterFacts;
    assert.deepEqual((await askForCluster(`127.0.0.1:${port}`, stop)).members, [], "of a release that doesn't tell");
    cluster = null;
    await assert.rejects(askForCluster(`127.0.0.1:${port}`, stop), { message: "n4 waits to be added" });
  });

  test("other paths and methods are problems too", async () => {
    for (const path of ["/", "/metrics/", "/v1/lock", "/v1/locks/", "//livez", "/%2e%2e/livez", "/v1/locks/a/b"]) {
      assert.equal(problemIn(await ask(path)).status, 404, path);
    }
    for (const method of ["POST", "PUT", "DELETE", "TRACE"]) {
      const answer = await ask(
        "/livez",
        { "content-type": "text/plain" },
        method,
        method.startsWith("P") ? "a body nobody reads" : "",
      );
      assert.equal(problemIn(answer).status, 405, method);
      assert.equal(answer.headers.allow, "GET, HEAD, OPTIONS");
    }
    const options = await ask("/livez", {}, "OPTIONS");
    assert.deepEqual([options.status, options.text, options.headers.allow], [204, "", "GET, HEAD, OPTIONS"]);
    health = { isLive: true, isReady: true, problem: null };
    const head = await ask("/livez", {}, "HEAD");
    assert.deepEqual([head.status, head.text, head.headers["content-length"]], [200, "", "16"]);
  });

  test("/v1/clock and /v1/checkup, of a node that isn't ready too", async () => {
    assert.deepEqual(JSON.parse((await ask("/v1/clock")).text), { boot: 7, monotonicMs: 1_234.5 });
    const { disk, ...told } = JSON.parse((await ask("/v1/checkup")).text) as CheckupAnswer;
    assert.ok(disk !== null && disk.totalBytes >= disk.freeBytes && disk.freeBytes > 0);
    assert.deepEqual(told, checkup);
    assert.deepEqual(told.file.nodes, nodes);
    assert.deepEqual(told.links, [
      { id: "n2", isLinked: false },
      { id: "n3", isLinked: true },
    ]);
    assert.equal((await ask("/v1/checkup", { origin: "http://evil.example" })).status, 403);
  });

  test("web pages of others are kept out, by origin and by host", async () => {
    assert.equal(problemIn(await ask("/metrics", { origin: "http://evil.example" })).status, 403);
    assert.equal(problemIn(await ask("/metrics", { origin: "null" })).status, 403);
    assert.equal(problemIn(await ask("/metrics", { host: "rebound.example" })).status, 421);
    assert.equal(problemIn(await ask("/metrics", { host: "127.0.0.1.evil.example:80" })).status, 421);
    const listed = await ask("/livez", { origin: "https://tool.example" });
    assert.deepEqual([listed.status, listed.headers["access-control-allow-origin"]], [200, "https://tool.example"]);
    for (const host of ["localhost", "LOCALHOST:7101", "127.0.0.1:1", "127.9.9.9", "[::1]:7101", "locks.example:80"]) {
      assert.equal((await ask("/livez", { host })).status, 200, host);
    }
  });

  test("a node that other machines can reach is called by any name", async () => {
    const open = serverFor(
      { origins: [], hosts: [], isLoopbackOnly: false },
      {
        health: () => ({ isLive: true, isReady: true, problem: null }),
        status: () => null,
        identity: () => null,
        cluster: () => null,
        keys: () => null,
        clock: () => ({ boot: null, monotonicMs: 0 }),
        checkup: () => checkup,
        metrics: () => Promise.reject(new Error()),
        backup: () => Promise.reject(new Error()),
        hasSession: () => false,
      },
    );
    await new Promise<void>((resolve) => open.listen(0, "127.0.0.1", resolve));
    try {
      const answer = await fetch(`http://127.0.0.1:${(open.address() as AddressInfo).port}/livez`);
      assert.equal(answer.status, 200);
    } finally {
      open.close();
      open.closeAllConnections();
    }
  });
});
