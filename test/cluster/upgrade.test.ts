/** Two releases side by side: this one, and the next with one more command (one-more-command.patch). Up, half up, back, up and finalized. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import type { Holdfast, Lock } from "@holdfast/client";
import { decodeServerFrame, encodeClientFrame, encodeCommand } from "@holdfast/wire";
import type { ServerMessage } from "@holdfast/wire";
import { WebSocket } from "ws";
import { holdfastBin, statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { buildNextRelease } from "../harness/next-release.js";
import type { NextRelease } from "../harness/next-release.js";
import { assertInRefusals, commandsOf, run } from "../harness/operations-page.js";
import { until } from "../harness/until.js";

interface NewCommand {
  readonly kind: "setSessionInfo";
  readonly session: number;
  readonly request: number;
  readonly settled: number;
  readonly seen: readonly number[];
  readonly info: string;
}

describe("two releases side by side", { timeout: 280_000 }, () => {
  let next: NextRelease;
  let encodeNew: (command: NewCommand) => Uint8Array;
  let cluster: TestCluster;
  let client: Holdfast;
  let held: Lock;
  let lastToken = 0;

  before(async () => {
    next = await buildNextRelease("test/cluster/one-more-command.patch");
    encodeNew = (await next.load<{ encodeCommand: typeof encodeNew }>("wire")).encodeCommand;
    cluster = await TestCluster.start({ limits: { snapshotEntries: 40, trailingEntriesMax: 10 } });
    // Longer than the time for which the test leaves the cluster without a majority.
    client = await cluster.connect({ ttlMs: 60_000 });
    await cluster.raise();
    held = await client.acquire("held");
  });
  after(async () => {
    await cluster?.close();
    next?.remove();
  });

  async function restart(node: TestNode, bin: string): Promise<void> {
    if (node.isRunning) {
      node.signal("SIGTERM");
      assert.equal(await node.exited(), 0);
    }
    node.bin = bin;
    node.start();
    await until(`${node.id} is back`, async () => {
      const [own, leading] = await Promise.all([statusOf(node), cluster.leader().then(statusOf)]);
      return own !== null && leading !== null && own.leader !== null && own.lastApplied >= leading.lastApplied;
    });
  }

  /** The lock that was taken at the beginning is still held, and others can be; enough of them for a snapshot. */
  async function works(): Promise<void> {
    assert.equal((await client.inspect("held"))?.holders[0]?.token, held.token);
    await until("it is renewed", () => held.state === "held");
    for (let count = 0; count < 30; count += 1) {
      const lock = await client.acquire("other");
      assert.ok(lock.token > lastToken, "tokens rise");
      lastToken = lock.token;
      await lock.release();
    }
  }

  /** Asks the leader to carry the new command out: "done", or why not. A refusal leaves the connection as it was. */
  async function tryNew(info: string): Promise<string> {
    const leader = await cluster.leader();
    const socket = new WebSocket(`ws://${leader.endpoint}/`);
    const answers: ServerMessage[] = [];
    socket.on("message", (data) => answers.push(...decodeServerFrame(data as Buffer)));
    const answer = <Kind extends ServerMessage["kind"]>(kind: Kind) =>
      until(`an answer: ${kind}`, () =>
        answers.find((one): one is Extract<ServerMessage, { kind: Kind }> => one.kind === kind),
      );
    await once(socket, "open");
    const key = Array.from({ length: 32 }, () => Math.floor(Math.random() * 16).toString(16)).join("");
    const hello = { kind: "hello", protocol: 1, features: [], clusterId: null, seenIndex: 0, info: "" } as const;
    const opening = encodeCommand({ kind: "openSession", key, ttlMs: 10_000, info: "before" });
    socket.send(encodeClientFrame([hello, { kind: "command", payload: opening }]));
    const { session } = await answer("sessionOpened");
    const payload = encodeNew({ kind: "setSessionInfo", session, request: 1, settled: 1, seen: [], info });
    socket.send(encodeClientFrame([{ kind: "command", payload }]));
    const said = await until("an answer", () => answers.find(({ kind }) => kind === "outcome" || kind === "refused"));
    socket.send(encodeClientFrame([{ kind: "keepalive", session, number: 1 }]));
    await answer("acknowledged");
    const { info: seen } = (await client.sessions()).find(({ id }) => id === session) ?? {};
    assert.equal(seen, said.kind === "outcome" ? info : "before");
    socket.terminate();
    if (said.kind === "outcome") return "done";
    assert.ok(said.kind === "refused" && said.refusal.code === "incompatible", JSON.stringify(said));
    return said.refusal.problem;
  }

  /** The page's commands of an upgrade: where it stands, and its end. */
  const [show = [], finalize = []] = commandsOf("Rolling upgrade", 2, {});

  async function told(command: readonly string[]): Promise<{ readonly code: number | string; readonly text: string }> {
    const { code, out, err } = await run(command, { HOLDFAST_ENDPOINTS: cluster.endpoints.join() });
    return { code, text: `${out}${err}` };
  }

  async function versions(): Promise<(string | undefined)[]> {
    const states = await Promise.all(cluster.nodes.map(statusOf));
    return states.map((state) =>
      state === null ? undefined : `${state.clusterVersion} of ${state.versions.min}-${state.versions.max}`,
    );
  }

  it("half up: everything goes on, the new command is refused by old and new leaders, and nothing can be finalized", async () => {
    await works();
    const [first, second, third] = cluster.nodes as [TestNode, TestNode, TestNode];
    assert.deepEqual(await versions(), ["2 of 1-2", "2 of 1-2", "2 of 1-2"]);
    await restart(first, next.bin);
    await until("the new node leads", async () => (await client.transfer("n1"))?.id === "n1");
    assert.match(
      await tryNew("x"),
      /^setSessionInfo needs cluster version 3, and the cluster is at 2: n2 runs version 2 at most, n3 runs version 2 at most$/,
    );
    await until("an old node leads", async () => (await client.transfer("n3"))?.id === "n3");
    assert.match(await tryNew("x"), /^n3 leads, and its release doesn't know commands of kind 15;/);
    await restart(second, next.bin);
    await works();
    assert.deepEqual(await versions(), ["2 of 1-3", "2 of 1-3", "2 of 1-2"]);
    const refused = await told(finalize);
    assert.equal(refused.code, 1);
    assert.match(refused.text, /can't be raised to 3: n3 runs version 2 at most/);
    third.signal("SIGTERM");
    await third.exited();
    assert.match((await told(finalize)).text, /can't be raised to 3: n3 can't be reached/);
    await restart(third, next.bin);
  });

  it("up, not finalized: the new command is still refused, and all nodes can go back", async () => {
    await works();
    assert.match(await tryNew("x"), /the cluster is at 2: run holdfast upgrade --finalize$/);
    assert.match((await told(show)).text, /all nodes run version 3: holdfast upgrade --finalize/);
    const snapshots = await Promise.all(cluster.nodes.map(statusOf));
    assert.ok(
      snapshots.every((state) => (state?.snapshotIndex ?? 0) > 40),
      "the next release has written snapshots",
    );
    for (const node of cluster.nodes) {
      await restart(node, holdfastBin);
      await works();
    }
    assert.deepEqual(await versions(), ["2 of 1-2", "2 of 1-2", "2 of 1-2"]);
  });

  it("up and finalized: the new command works", async () => {
    for (const node of cluster.nodes) await restart(node, next.bin);
    const finalized = await told([...finalize, "--json"]);
    assert.deepEqual(JSON.parse(finalized.text), { clusterVersion: 3 });
    await until("all have heard", async () => (await versions()).every((each) => each === "3 of 1-3"));
    assert.equal(await tryNew("after"), "done");
    await works();
    await restart(cluster.nodes[0] as TestNode, next.bin);
    assert.deepEqual(await versions(), ["3 of 1-3", "3 of 1-3", "3 of 1-3"]);
  });

  it("finalized: the old release refuses to run, beside the others and alone, and leaves the data as it is", async () => {
    const [first] = cluster.nodes as [TestNode];
    const refuses = async (): Promise<void> => {
      first.signal("SIGTERM");
      await first.exited();
      first.bin = holdfastBin;
      first.start();
      assert.equal(await first.exited(), 83);
      assert.match(first.log(), /the cluster is at version 3, and .*: start the newer release again/);
      assertInRefusals(first.log(), 83);
      first.bin = next.bin;
    };
    await refuses();
    await works();
    for (const node of cluster.nodes.slice(1)) {
      node.signal("SIGTERM");
      assert.equal(await node.exited(), 0);
    }
    await refuses();
    for (const node of cluster.nodes) node.start();
    await cluster.leader();
    await works();
    assert.equal(await tryNew("again"), "done");
    assert.equal(await held.release(), "released");
  });
});
