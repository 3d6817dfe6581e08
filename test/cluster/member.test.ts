/**
 * A cluster of real processes changes all its members, by the commands of docs/operations.md, while a client holds a lock throughout and
 * workers take others. Nobody loses anything, and tokens only rise.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Holdfast, Lock } from "@holdfast/client";
import { CliProcess, runCli } from "../cli/cli-process.js";
import type { CliResult } from "../cli/cli-process.js";
import { freePorts, statusOf } from "../harness/cluster.js";
import type { TestCluster } from "../harness/cluster.js";
import { assertInRefusals, commandsOf } from "../harness/operations-page.js";
import { limitMs, startPatient, until } from "./patient.js";

const ttlMs = 60_000;
/** Between two locks of a worker. Four of them take some forty a second: each change meets many, and nodes that start have the machine. */
const workerPauseMs = 100;

interface Members {
  readonly leader: string;
  readonly removed: readonly string[];
  readonly members: readonly { readonly id: string; readonly role: string }[];
}

/** Takes one lock after the other until it is told to stop; each token is above the one before. */
class Worker {
  rounds = 0;
  /** Why it has ended though nobody told it to. */
  problem: unknown = null;
  private isOver = false;
  private readonly done: Promise<void>;

  constructor(client: Holdfast, name: string) {
    this.done = this.run(client, name).catch((error: unknown) => {
      this.problem = error;
    });
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.done;
  }

  private async run(client: Holdfast, name: string): Promise<void> {
    let token = 0;
    while (!this.isOver) {
      const lock = await client.acquire(name, { waitMs: 120_000 });
      assert.ok(lock.token > token, `${name}: ${lock.token} after ${token}`);
      token = lock.token;
      await lock.release();
      this.rounds += 1;
      await sleep(workerPauseMs);
    }
  }
}

describe("a cluster whose members change", { timeout: 1_200_000 }, () => {
  let cluster: TestCluster;
  let client: Holdfast;
  let kept: Lock;
  let workers: Worker[] = [];
  let isAborted = false;

  before(async () => {
    cluster = await startPatient();
    client = await cluster.connect({ ttlMs, connectTimeoutMs: limitMs });
    kept = await client.acquire("kept");
    kept.signal.addEventListener("abort", () => (isAborted = true));
    const others = await Promise.all([1, 2].map(() => cluster.connect({ ttlMs, connectTimeoutMs: limitMs })));
    workers = others.flatMap((other, at) => [new Worker(other, `work:${at}`), new Worker(other, "shared work")]);
  });
  after(async () => cluster?.close());

  /** At the members that run. */
  function environment(): Record<string, string> {
    const running = cluster.nodes.filter((node) => node.isRunning);
    return { HOLDFAST_ENDPOINTS: running.map((node) => node.endpoint).join(",") };
  }

  function cli(...words: readonly string[]): Promise<CliResult> {
    return runCli([...words, "--timeout", "60s"], environment());
  }

  async function members(): Promise<Members> {
    const { code, out, err } = await cli("member", "list", "--json");
    assert.equal(code, 0, err);
    return JSON.parse(out) as Members;
  }

  /** The `count` commands of a section, with the test's addresses in place of the manual's. */
  async function follow(section: string, count: number): Promise<CliResult[]> {
    const results: CliResult[] = [];
    for (const [, ...words] of commandsOf(section, count, { nodes: cluster.nodes })) {
      const result = await cli(...words);
      assert.equal(result.code, 0, `holdfast ${words.join(" ")}: ${result.err}`);
      results.push(result);
    }
    return results;
  }

  async function voters(): Promise<string> {
    const { members: all } = await members();
    assert.ok(all.every(({ role }) => role === "voter"));
    return all.map(({ id }) => id).join(" ");
  }

  /** Nothing is lost, and everybody has got on since the last look. */
  async function allIsWell(): Promise<void> {
    const rounds = workers.map((worker) => worker.rounds);
    await until("the workers get on, or one has ended", () =>
      workers.every(({ rounds: now, problem }, at) => problem !== null || now > (rounds[at] ?? 0) + 2),
    );
    for (const { problem } of workers) assert.equal(problem, null);
    assert.deepEqual([isAborted, kept.state], [false, "held"]);
    const view = await client.inspect("kept");
    assert.equal(view?.holders[0]?.token, kept.token);
  }

  it("replaces a dead node whose directory is lost", async () => {
    const dead = cluster.node("n3");
    await dead.kill();
    rmSync(dead.directory, { recursive: true });
    dead.start();
    assert.equal(await dead.exited(limitMs), 80, "a wiped directory under an old id");
    assertInRefusals(dead.log(), 80);
    const n4 = await cluster.prepareJoin("n4");
    const place = { nodes: cluster.nodes, words: { "/var/lib/holdfast": n4.directory } };
    const [start = []] = commandsOf("Members", 1, place);
    n4.startWith(...start.slice(1));
    await until("it waits", () => /n4 waits to be added: holdfast member add n4/.test(n4.log()));
    const ready = await fetch(`http://${n4.endpoint}/readyz`);
    assert.deepEqual([ready.status, /waits to be added/.test(await ready.text())], [503, true]);
    await until("status says so", async () => {
      const { out } = await runCli(["status", "--json", "--endpoints", n4.endpoint, "--timeout", "5s"], {});
      return (JSON.parse(out) as { nodes: { role: string }[] }).nodes[0]?.role === "joining";
    });

    const [replaced] = await follow("Replace a dead node", 1);
    assert.match(replaced?.out ?? "", /n4 is a learner\n(.*\n)*n4 has caught up\nn4 is a voter, n3 is removed\n/);
    assert.equal(await voters(), "n1 n2 n4");
    assert.deepEqual((await members()).removed, ["n3"]);
    await allIsWell();
    const [again] = await follow("Replace a dead node", 1);
    assert.equal(again?.out, "nothing to do: it is so already\n");

    // The old id, with a directory that was never formed: nobody calls it, but the cluster says so when it asks.
    rmSync(dead.directory, { recursive: true });
    const back = await cluster.join("n3");
    assert.equal(await back.exited(limitMs), 84);
    assert.match(back.log(), /n3 was removed from this cluster/);
    assertInRefusals(back.log(), 84);
    await n4.kill();
    n4.start();
    await until("it is back, without anybody's help", async () => (await statusOf(n4))?.leader !== undefined);
  });

  it("goes by its log, not by its file, when it is started again with the file that it was begun with", async () => {
    const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
    await n1.kill();
    await n2.kill();
    // Its file names n2, which is down, n3, which was removed, and not n4, without which it has no majority.
    n1.start();
    await allIsWell();
    n2.start();
    await until("n2 is back", async () => ((await statusOf(n2))?.leader ?? null) !== null);
    assert.equal(await voters(), "n1 n2 n4");
  });

  it("refuses what would lose the quorum, and names who is down", async () => {
    const { leader } = await members();
    const [down, other] = (await members()).members.map(({ id }) => id).filter((id) => id !== leader) as [
      string,
      string,
    ];
    await cluster.node(down).kill();
    await until("the leader misses it", async () => {
      const { code, err } = await cli("member", "remove", other, "--json");
      assert.equal(code, 1);
      const { error } = JSON.parse(err) as { error: { code: string; message: string } };
      return error.code === "would_lose_quorum" && error.message.includes(down);
    });
    cluster.node(down).start();
    await allIsWell();
  });

  it("goes from 3 to 5 although a command is interrupted, and back to 3: the first three are all gone then", async () => {
    // Nobody answers at n5's address yet: the command waits, and is interrupted.
    const [clientPort = 0, peerPort = 0] = await freePorts(2);
    const waiting = new CliProcess(
      ["member", "add", "n9", "--peer", `127.0.0.1:${peerPort}`, "--client", `127.0.0.1:${clientPort}`],
      environment(),
    );
    await until("it waits", () => /n9: nobody answers/.test(waiting.out));
    waiting.child.kill("SIGINT");
    await waiting.ended;
    await cluster.join("n5");
    await cluster.join("n6");
    const results = await follow("From 1 or 3 to 5", 7);
    assert.match(results[0]?.out ?? "", /n5 is a learner\n/);
    // The page ends with the way back: n1 and n2 are removed, one of which may lead.
    assert.equal(await voters(), "n4 n5 n6");
    for (const id of ["n1", "n2"]) {
      const gone = cluster.node(id);
      assert.equal(await gone.exited(limitMs), 84);
      gone.start();
      assert.equal(await gone.exited(limitMs), 84, "and again, at once");
      assert.match(gone.log(), new RegExp(`${id} was removed from its cluster`));
      assertInRefusals(gone.log(), 84);
      const doctor = await runCli(["doctor", "--data", gone.directory], {});
      assert.equal(doctor.code, 4);
      assert.match(doctor.out, /exit code 84[^]*take the node's unit away/);
    }
    await allIsWell();
  });

  it("moves to other machines, and the clients that run move along", async () => {
    for (const id of ["n7", "n8", "n9"]) await cluster.join(id);
    await follow("Move the cluster to other machines", 3);
    assert.equal(await voters(), "n7 n8 n9");
    for (const id of ["n4", "n5", "n6"]) assert.equal(await cluster.node(id).exited(limitMs), 84);
    await allIsWell();
    for (const worker of workers) await worker.stop();
    for (const { problem } of workers) assert.equal(problem, null);
    assert.equal(await kept.release(), "released");
  });

  it("comes back by itself when all its joined nodes were killed", async () => {
    const nodes = ["n7", "n8", "n9"].map((id) => cluster.node(id));
    for (const node of nodes) await node.kill();
    for (const node of nodes) node.start();
    const lock = await client.acquire("kept", { waitMs: 120_000 });
    assert.ok(lock.token > kept.token);
    await lock.release();
  });
});
