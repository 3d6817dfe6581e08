/** status, ls, show, release, transfer and bench against a cluster. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Holdfast, LockView } from "@holdfast/client";
import { statusOf, TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { CliProcess, runCli } from "./cli-process.js";

let cluster: TestCluster;
let holdfast: Holdfast;
let environment: Record<string, string> = {};

before(async () => {
  cluster = await TestCluster.start();
  holdfast = await cluster.connect({ info: "the test" });
  environment = { HOLDFAST_ENDPOINTS: cluster.endpoints.join(",") };
});

after(() => cluster.close());

async function asJson<T>(...words: readonly string[]): Promise<T> {
  const { code, out, err } = await runCli([...words, "--json"], environment);
  assert.deepEqual([code, err], [0, ""], out);
  return JSON.parse(out) as T;
}

interface Status {
  readonly leader: string | null;
  readonly nodes: readonly {
    readonly id: string;
    readonly role: string;
    readonly term: number | null;
    readonly commitIndex: number | null;
  }[];
}

test("status: the leader and every node's word; a node that is down is named", async () => {
  const leader = await cluster.leader();
  const status = await asJson<Status>("status");
  assert.equal(status.leader, leader.id);
  assert.deepEqual(
    status.nodes.map(({ id }) => id),
    ["n1", "n2", "n3"],
  );
  for (const { id, role, term, commitIndex } of status.nodes) {
    assert.equal(role, id === leader.id ? "leader" : "follower");
    assert.ok(Number.isInteger(term) && Number.isInteger(commitIndex));
  }
  const [down = leader] = cluster.others(leader);
  await down.kill();
  const without = await runCli(["status"], environment);
  assert.equal(without.code, 0);
  assert.match(without.out, new RegExp(`^${down.id} +unreachable `, "m"));
  down.start();
  await until("it answers", () => statusOf(down));
  await until("it is back", async () =>
    (await asJson<Status>("status")).nodes.every(({ role }) => role !== "unreachable"),
  );
});

test("status --endpoints names one node and shows all", async () => {
  const { code, out } = await runCli(["status", "--json", "--endpoints", cluster.endpoints[0] ?? ""], {});
  assert.equal(code, 0);
  assert.equal((JSON.parse(out) as Status).nodes.length, 3);
});

test("ls and show: holders and waiters; free locks", async () => {
  const lock = await holdfast.acquire("list:a");
  const waiting = holdfast.acquire("list:a", { waitMs: 30_000 });
  await until("it waits", async () => (await holdfast.inspect("list:a"))?.waiterCount === 1);
  const { locks } = await asJson<{ locks: LockView[] }>("ls", "list:");
  assert.deepEqual(
    locks.map(({ name, holders, waiterCount }) => [name, holders[0]?.token, waiterCount]),
    [["list:a", lock.token, 1]],
  );
  assert.equal((await runCli(["ls", "nothing:"], environment)).out, "no locks\n");
  const shown = await runCli(["show", "list:a"], environment);
  assert.match(shown.out, new RegExp(`^ *${lock.token} +exclusive .*the test$`, "m"));
  await lock.release();
  await (await waiting).release();
  assert.deepEqual(await asJson("show", "list:a"), { name: "list:a", lock: null });
  assert.equal((await runCli(["show", ""], environment)).code, 2, "an empty name is a wrong argument");
});

test("release --force ends exactly the generation that it names", async () => {
  const lock = await holdfast.acquire("forced");
  const stale = await runCli(
    ["release", "forced", "--token", String(lock.token + 1), "--force", "--json"],
    environment,
  );
  assert.equal(stale.code, 1);
  assert.equal((JSON.parse(stale.err) as { error: { code: string } }).error.code, "stale_token");
  assert.equal(lock.state, "held");
  assert.deepEqual(await asJson("release", "forced", "--token", String(lock.token), "--force"), {
    name: "forced",
    token: lock.token,
    ended: 1,
  });
  await until("the holder hears of it", () => lock.lossReason === "forced");
});

test("transfer: to a node by name, or to any", async () => {
  const leader = await cluster.leader();
  const [next = leader] = cluster.others(leader);
  assert.deepEqual(await asJson("transfer", next.id), { leader: next.id });
  assert.equal((await cluster.leader()).id, next.id);
  assert.deepEqual(await asJson("transfer", next.id), { leader: next.id }, "it leads already");
  assert.notEqual((await asJson<{ leader: string }>("transfer")).leader, next.id);
  const unknown = await runCli(["transfer", "n9"], environment);
  assert.equal(unknown.code, 2);
});

test("bench: cycles and percentiles that fit each other; connections are shared", async () => {
  interface Latency {
    readonly count: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
    readonly maxMs: number;
  }
  const result = await asJson<{
    cycles: number;
    seconds: number;
    cyclesPerSecond: number;
    connections: number;
    cycle: Latency;
    acquire: Latency;
  }>(...["bench", "--clients", "4", "--connections", "2", "--locks", "3", "--seconds", "2", "--warmup", "200ms"]);
  assert.equal(result.connections, 2);
  assert.ok(result.cycles > 0);
  assert.equal(result.cycle.count, result.cycles);
  assert.ok(Math.abs(result.cyclesPerSecond - result.cycles / result.seconds) < 0.1);
  assert.ok(
    result.acquire.p50Ms <= result.cycle.p50Ms &&
      result.cycle.p50Ms <= result.cycle.p99Ms &&
      result.cycle.p99Ms <= result.cycle.maxMs,
  );
  assert.equal((await runCli(["ls", "bench:"], environment)).out, "no locks\n", "nothing stays behind");
});

test("watch: a line for each change, as JSON on demand, until it is stopped", async () => {
  const watching = new CliProcess(["watch", "watched:", "--json"], environment);
  const events = (): { type: string; name?: string; token?: number }[] =>
    watching.out.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as { type: string }]));
  await until("it watches", () => events().length === 1);
  const lock = await holdfast.acquire("watched:1");
  await (await holdfast.acquire("other")).release();
  await lock.release();
  await until("both changes are told", () => events().length === 3);
  assert.deepEqual(
    events().map(({ type, name, token }) => [type, name, token]),
    [
      ["gap", undefined, undefined],
      ["granted", "watched:1", lock.token],
      ["released", "watched:1", lock.token],
    ],
  );
  watching.child.kill("SIGTERM");
  assert.equal((await watching.ended).code, 143);
});
