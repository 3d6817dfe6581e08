/** After a restore one node is the cluster: it gets two more by the commands with which members change (member.test.ts), and may go then. */
import assert from "node:assert/strict";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { runCli } from "../cli/cli-process.js";
import { statusOf } from "../harness/cluster.js";
import type { TestCluster, TestNode } from "../harness/cluster.js";
import { limitMs, startPatient, until } from "./patient.js";

describe("a restored cluster", { timeout: 900_000 }, () => {
  let cluster: TestCluster;
  before(async () => {
    cluster = await startPatient();
  });
  after(async () => cluster?.close());

  it("grows from 1 to 3 by the same commands", async () => {
    const first = await cluster.connect({ connectTimeoutMs: limitMs });
    const { token } = await first.acquire("doc");
    const file = join(cluster.root, "backup");
    const run = async (words: readonly string[], endpoints: readonly string[]): Promise<string> => {
      const { code, out, err } = await runCli(words, { HOLDFAST_ENDPOINTS: endpoints.join(",") });
      assert.equal(code, 0, `${words.join(" ")}: ${err}`);
      return out;
    };
    await run(["backup", file], cluster.endpoints);
    for (const node of cluster.nodes) await node.kill();
    const n1 = cluster.node("n1");
    rmSync(n1.directory, { recursive: true });
    await run(["restore", file, "--data", n1.directory, "--id", "n1", "--peer", n1.peer, "--client", n1.endpoint], []);
    n1.start();
    await until("it leads", async () => (await statusOf(n1))?.role === "leader");
    const joined: TestNode[] = [];
    for (const id of ["n4", "n5"]) joined.push(await cluster.join(id));
    const at = [n1.endpoint];
    for (const { id, peer, endpoint } of joined) {
      await run(["member", "add", id, "--peer", peer, "--client", endpoint], at);
      await run(["member", "promote", id], at);
    }
    assert.ok(joined.every(({ directory }) => existsSync(join(directory, "joined.json"))));
    // The first may go now: the other two have everything.
    await n1.kill();
    const client = await cluster.connect({
      connectTimeoutMs: limitMs,
      endpoints: joined.map(({ endpoint }) => endpoint),
    });
    const lock = await client.acquire("doc", { waitMs: 120_000 });
    assert.ok(lock.token > token);
    await lock.release();
  });
});
