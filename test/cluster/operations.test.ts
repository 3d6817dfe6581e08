/**
 * The pages of docs/operations.md that have no test of their own elsewhere: a cluster is started as it says, the disks of a follower and of
 * the leader are full, nodes are started wrongly, and in the end all is lost and begun again.
 */
import assert from "node:assert/strict";
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Holdfast, Lock } from "@holdfast/client";
import { statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { assertInRefusals, commandsOf, run } from "../harness/operations-page.js";
import type { Place } from "../harness/operations-page.js";
import { until } from "../harness/until.js";

/** Beyond all that a node writes besides its database. At a start a table is made of the whole log: it has to fit while there is space. */
const full = { first: 128, second: 320, atStart: 48 } as const;

interface Finding {
  readonly check: string;
  readonly severity: string;
}

describe("a night with docs/operations.md", { timeout: 280_000 }, () => {
  let cluster: TestCluster;
  let client: Holdfast;
  let held: Lock;
  let follower: TestNode;
  let file = "";
  let lastToken = 0;

  before(async () => {
    cluster = await TestCluster.create();
    file = join(cluster.root, "cluster.json");
  });
  after(async () => cluster?.close());

  /** The page's n1, in the place of which stands `node`. */
  function placeOf(node: TestNode): Place {
    const words = { n1: node.id, "/etc/holdfast/cluster.json": file, "/var/lib/holdfast": node.directory };
    return { nodes: cluster.nodes, words: { ...words, "/mnt/larger/holdfast": `${node.directory}.larger` } };
  }

  /** Every grant's token is above all that were acknowledged before. */
  async function work(info = ""): Promise<void> {
    const names = Array.from({ length: 20 }, (_, at) => `work:${at}`);
    const locks = await Promise.all(names.map((name) => client.acquire(name, { info, waitMs: 60_000 })));
    const tokens = locks.map(({ token }) => token);
    assert.ok(Math.min(...tokens) > lastToken, `${tokens.join(" ")} after ${lastToken}`);
    lastToken = Math.max(...tokens);
    await Promise.all(locks.map((lock) => lock.release()));
  }

  /** Ended with this code and with a sentence that the page knows. Returns what it said. */
  async function refused(node: TestNode, code: number, from: number): Promise<string> {
    assert.equal(await node.exited(60_000), code, node.log().slice(from));
    const said = node.log().slice(from);
    assertInRefusals(said, code);
    return said;
  }

  async function restart(node: TestNode, fileKibMax: number | null): Promise<void> {
    node.signal("SIGTERM");
    assert.equal(await node.exited(), 0);
    node.fileKibMax = fileKibMax;
    node.start();
    await until(`${node.id} is back`, async () => ((await statusOf(node))?.leader ?? null) !== null);
  }

  /** Locks are taken and given back until the node ends. */
  async function fill(node: TestNode): Promise<string> {
    const from = node.log().length;
    while (node.isRunning) await work("x".repeat(1_000));
    return refused(node, 74, from);
  }

  async function caughtUp(node: TestNode): Promise<void> {
    const isSo = async (): Promise<boolean> => {
      const [own, leading] = await Promise.all([statusOf(node), cluster.leader().then(statusOf)]);
      return own !== null && leading !== null && own.lastApplied >= leading.commitIndex;
    };
    await until(`${node.id} has caught up`, isSo, 60_000);
  }

  it("Three machines: the file is checked, and the nodes are started with it", async () => {
    const commands = cluster.nodes.map((node) => commandsOf("Three machines", 2, placeOf(node)));
    const checked = await run(commands[0]?.[0] ?? []);
    assert.equal(checked.code, 0, checked.err);
    for (const [at, node] of cluster.nodes.entries()) node.startWith(...(commands[at]?.[1] ?? []).slice(1));
    await cluster.leader();
    client = await cluster.connect({ ttlMs: 60_000 });
    held = await client.acquire("held");
  });

  it("Disk full, at the leader: another one leads, nothing that was acknowledged is lost, and it comes back", async () => {
    const ended = await cluster.leader();
    await restart(ended, full.first);
    await until("it leads again", async () => (await client.transfer(ended.id))?.id === ended.id);
    await fill(ended);
    await work();
    assert.notEqual(await cluster.leader(), ended);
    assert.equal(held.state, "held");
    assert.equal((await client.inspect("held"))?.holders[0]?.token, held.token);
    ended.fileKibMax = null;
    ended.start();
    await caughtUp(ended);
    await work();
  });

  it("Disk full, at a follower: it ends, also when it is started again; the others go on; with space it comes back", async () => {
    follower = cluster.others(await cluster.leader())[0] as TestNode;
    await restart(follower, full.second);
    const said = await fill(follower);
    assert.match(said, /a write to the database failed: IO error: \S+\/db\/\d+\.log: \w+/);
    await work();
    const from = follower.log().length;
    follower.fileKibMax = full.atStart;
    follower.start();
    assert.match(await refused(follower, 74, from), /opening the data directory \S+ failed: /);
    await work();

    follower.fileKibMax = null;
    const [see = [], df = [], du = [], examine = [], status = [], copy = [], start = []] = commandsOf(
      "Disk full",
      7,
      placeOf(follower),
    );
    for (const command of [df, du]) assert.equal((await run(command)).code, 0);
    const examined = await run([...examine, "--json"]);
    const { findings } = JSON.parse(examined.out) as { findings: readonly Finding[] };
    assert.ok(findings.some(({ check }) => check === "identity"));
    const faults = findings.filter(({ check, severity }) => severity !== "ok" && check !== "disk space");
    assert.deepEqual(faults, [], "no quarantine, no damage");
    assert.equal((await run(copy)).code, 0);
    follower.startWith(...start.slice(1));
    await caughtUp(follower);
    const environment = { HOLDFAST_ENDPOINTS: cluster.endpoints.join() };
    const shown = await run(status, environment);
    assert.equal(shown.code, 0, shown.err);
    const seen = await run([...see, "--seconds", "1"], environment);
    assert.match(seen.out, /disk space/);

    // The copy is the node's directory from now on.
    await follower.kill();
    rmSync(follower.directory, { recursive: true });
    renameSync(`${follower.directory}.larger`, follower.directory);
  });

  it("A node that refuses to start: two on one directory, another's directory, a taken port, a second beginning", async () => {
    const [other] = cluster.others(follower) as [TestNode];
    const refusal = async (code: number, id: string, directory: string, ...more: string[]): Promise<void> => {
      const from = follower.log().length;
      follower.startWith("node", "--config", file, "--id", id, "--data", directory, ...more);
      await refused(follower, code, from);
    };
    await refusal(73, other.id, other.directory);
    await refusal(77, other.id, follower.directory);
    await refusal(69, other.id, join(cluster.root, "new"));
    await refusal(2, follower.id, follower.directory, "--bootstrap", "--first-index", "7");
  });

  it("A cluster that was lost: begun again above all tokens", async () => {
    const firstIndex = lastToken + 1_000_000;
    for (const node of cluster.nodes) await node.kill();
    for (const node of cluster.nodes) {
      const place = placeOf(node);
      const words = { ...place.words, N: String(firstIndex) };
      const [move = [], start = []] = commandsOf("A cluster that was lost", 2, { ...place, words });
      assert.equal((await run(move)).code, 0);
      assert.ok(!existsSync(node.directory) && existsSync(`${node.directory}.lost`));
      node.startWith(...start.slice(1));
    }
    await cluster.leader();
    const fresh = await cluster.connect();
    const lock = await fresh.acquire("work");
    assert.ok(lock.token > firstIndex);
    await lock.release();
    // Without the two options from then on.
    const [node] = cluster.nodes as [TestNode];
    await node.kill();
    node.start();
    await caughtUp(node);
    const next = await fresh.acquire("work", { waitMs: 60_000 });
    assert.ok(next.token > lock.token);
    await next.release();
  });
});
