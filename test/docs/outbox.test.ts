/**
 * docs/examples/outbox, as it stands there but for shorter times, on real processes: worker, sender and receiver are killed and paused at
 * each message that passes between them and what they talk to. Nothing is lost, and the receiver applies each charge once.
 */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { TestCluster, freePorts } from "../harness/cluster.js";
import { debianPostgres, skipWithoutDebianPostgres } from "../harness/postgres.js";
import type { TestPool, TestPostgres } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import { ExampleProcess } from "./example-process.js";
import { StepProxy, Steps } from "./step-proxy.js";

const top = fileURLToPath(new URL("../../../", import.meta.url));
const cents = 250;
/** What opens a connection to the database takes about so many messages, and changes nothing. */
const openingSteps = 5;
/** Each is two processes. */
const atOnce = 8;
const harms = ["SIGKILL", "SIGSTOP"] as const;
type Harm = (typeof harms)[number];

let cluster: TestCluster;
let postgres: TestPostgres;
let pool: TestPool;
let folder = "";
let lastOrder = 0;

/** The example's folder with the packages in reach, and times in which a test can wait for leases to end. */
function copyExample(): string {
  const copy = mkdtempSync(join(tmpdir(), "holdfast-outbox-"));
  cpSync(join(top, "docs/examples/outbox"), copy, { recursive: true });
  mkdirSync(join(copy, "node_modules"));
  symlinkSync(join(top, "node_modules/@holdfast"), join(copy, "node_modules/@holdfast"));
  symlinkSync(join(top, "test/drivers/node_modules/pg"), join(copy, "node_modules/pg"));
  for (const [name, from, to] of [
    ["worker.js", "connect()", "connect({ ttlMs: 2_000 })"],
    ["sender.js", "timeout(10_000)", "timeout(2_000)"],
  ] as const) {
    const text = readFileSync(join(copy, name), "utf8");
    assert.ok(text.includes(from), `${name} has no ${from}`);
    writeFileSync(join(copy, name), text.replace(from, to));
  }
  return copy;
}

function environment(databasePort: number, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { hostname, username, password, pathname } = new URL(postgres.url);
  const database = { PGHOST: hostname, PGPORT: `${databasePort}`, PGUSER: username, PGPASSWORD: password };
  return { ...database, PGDATABASE: pathname.slice(1), HOLDFAST_ENDPOINTS: cluster.endpoints.join(","), ...more };
}

const databasePort = (): number => Number(new URL(postgres.url).port);

function run(program: string, words: readonly string[], env: Readonly<Record<string, string>>): ExampleProcess {
  return new ExampleProcess(join(folder, program), words, env);
}

async function mustSucceed(process: ExampleProcess): Promise<void> {
  assert.equal(await process.ended(), 0, process.output);
}

/** How many steps `program` takes when nothing happens to it. */
async function countSteps(body: (steps: Steps) => Promise<void>): Promise<number> {
  const steps = new Steps();
  await body(steps);
  assert.ok(steps.passed > openingSteps, `${steps.passed} steps`);
  return steps.passed;
}

async function newOrder(): Promise<number> {
  lastOrder += 1;
  const order = lastOrder;
  await pool.query("INSERT INTO orders VALUES ($1)", [order]);
  await pool.query("INSERT INTO items VALUES ($1, $2), ($1, $2)", [order, cents / 2]);
  return order;
}

/** An order that a worker has charged, and whose message lies in the outbox. */
async function newMessage(): Promise<number> {
  const order = await newOrder();
  await pool.query("UPDATE orders SET state = 'charged' WHERE id = $1", [order]);
  await pool.query("INSERT INTO outbox (key, body) VALUES ($1, $2)", [`charge:${order}`, { order, cents }]);
  return order;
}

/** The messages of one order, and whether each was received. */
async function messagesOf(order: number): Promise<unknown> {
  const text = `SELECT o.body, o.sent_at IS NOT NULL AS sent, r.key IS NOT NULL AS received, state
    FROM orders JOIN outbox o ON o.body->'order' = to_jsonb(id) LEFT JOIN received r USING (key) WHERE id = $1`;
  return (await pool.query(text, [order])).rows;
}

async function assertAppliedOnce(): Promise<void> {
  const text = "SELECT (SELECT cents FROM takings)::integer AS taken, (SELECT count(*) FROM received)::integer AS n";
  const row = (await pool.query(text)).rows[0] as { taken: number; n: number };
  assert.equal(row.taken, row.n * cents, "each charge that was received was applied once");
}

/** Runs `body` for each step and each harm, `width` of them at a time. */
async function atEachStep(
  steps: number,
  width: number,
  body: (at: number, harm: Harm) => Promise<boolean>,
): Promise<void> {
  const todo = harms.flatMap((harm) =>
    Array.from({ length: steps - openingSteps + 1 }, (_, at) => ({ harm, at: openingSteps + at })),
  );
  const runs = todo.length;
  let harmed = 0;
  const lane = async (): Promise<void> => {
    for (let next = todo.shift(); next !== undefined; next = todo.shift())
      if (await body(next.at, next.harm)) harmed += 1;
  };
  await Promise.all(Array.from({ length: width }, lane));
  // Two chunks may come as one, and a process then has a step less than was counted.
  assert.ok(harmed >= runs * 0.6, `${harmed} of ${runs} were harmed`);
}

describe("the outbox example", { skip: skipWithoutDebianPostgres(), timeout: 600_000 }, () => {
  before(async () => {
    [cluster, postgres] = await Promise.all([TestCluster.start({ nodes: 1 }), debianPostgres()]);
    folder = copyExample();
    pool = postgres.pool();
    await pool.query(readFileSync(join(folder, "schema.sql"), "utf8"));
  });

  // A test's own messages only: those of the workers are many.
  beforeEach(() => pool.query("DELETE FROM outbox"));

  after(async () => {
    if (folder !== "") rmSync(folder, { recursive: true, force: true });
    await postgres?.stop();
    await cluster?.close();
  });

  test("a worker killed or paused at each step: the order is charged and has one message", workerTest);
  test("a sender killed or paused at each step: each message arrives, and is applied once", senderTest);
  test("a receiver killed or paused at each step: each message arrives, and is applied once", receiverTest);
});

async function workerTest(): Promise<void> {
  const work = async (at: number, harm: Harm): Promise<boolean> => {
    const order = await newOrder();
    const steps: Steps = new Steps(at, () => old.signal(harm));
    const proxy = await StepProxy.start(databasePort(), steps);
    const old = run("worker.js", [`${order}`], environment(proxy.port));
    await until("the worker is harmed, or done", () => steps.hasActed || old.isOver, 120_000);
    await mustSucceed(run("worker.js", [`${order}`], environment(databasePort())));
    old.signal("SIGCONT");
    const end = await old.ended();
    await proxy.close();
    if (steps.hasActed && harm === "SIGKILL") assert.equal(end, "SIGKILL");
    const message = { body: { order, cents }, sent: false, received: false, state: "charged" };
    assert.deepEqual(await messagesOf(order), [message], `${harm} at step ${at}: ${old.output}`);
    return steps.hasActed;
  };
  const count = await countSteps(async (steps) => {
    const proxy = await StepProxy.start(databasePort(), steps);
    await mustSucceed(run("worker.js", [`${await newOrder()}`], environment(proxy.port)));
    await proxy.close();
  });
  await atEachStep(count, atOnce, work);
}

async function startReceiver(port: number, database: number): Promise<ExampleProcess> {
  const receiver = run("receiver.js", [], environment(database, { PORT: `${port}` }));
  await until("the receiver listens", () => {
    if (receiver.isOver) throw new Error(receiver.output);
    return receiver.output.includes("listening");
  });
  return receiver;
}

const urlAt = (port: number): string => `http://127.0.0.1:${port}/charges`;

async function assertArrived(order: number, what: string): Promise<void> {
  const message = { body: { order, cents }, sent: true, received: true, state: "charged" };
  assert.deepEqual(await messagesOf(order), [message], what);
  await assertAppliedOnce();
}

async function senderTest(): Promise<void> {
  const [port = 0] = await freePorts(1);
  const receiver = await startReceiver(port, databasePort());
  const sender = (database: number, target: number): ExampleProcess =>
    run("sender.js", [], environment(database, { RECEIVER: urlAt(target) }));
  const send = async (steps: Steps, started: (process: ExampleProcess) => Promise<void>): Promise<void> => {
    const proxies = await Promise.all([databasePort(), port].map((target) => StepProxy.start(target, steps)));
    await started(sender(proxies[0]?.port ?? 0, proxies[1]?.port ?? 0));
    await Promise.all(proxies.map((proxy) => proxy.close()));
  };
  const work = async (at: number, harm: Harm): Promise<boolean> => {
    const order = await newMessage();
    let old: ExampleProcess | null = null;
    const steps = new Steps(at, () => old?.signal(harm));
    await send(steps, async (process) => {
      old = process;
      await until("the sender is harmed, or done", () => steps.hasActed || process.isOver, 120_000);
      await mustSucceed(sender(databasePort(), port));
      process.signal("SIGCONT");
      await process.ended();
    });
    await assertArrived(order, `${harm} at step ${at}`);
    return steps.hasActed;
  };
  try {
    await newMessage();
    const count = await countSteps((steps) => send(steps, mustSucceed));
    await atEachStep(count, 1, work);
  } finally {
    receiver.signal("SIGKILL");
  }
}

async function receiverTest(): Promise<void> {
  const work = async (at: number, harm: Harm): Promise<boolean> => {
    const order = await newMessage();
    const [port = 0] = await freePorts(1);
    const steps: Steps = new Steps(at, () => receiver.signal(harm));
    const proxy = await StepProxy.start(databasePort(), steps);
    const receiver = await startReceiver(port, proxy.port);
    const environmentOfSender = environment(databasePort(), { RECEIVER: urlAt(port) });
    let next = receiver;
    try {
      const end = await run("sender.js", [], environmentOfSender).ended();
      if (!steps.hasActed) assert.equal(end, 0);
      receiver.signal("SIGCONT");
      if (steps.hasActed && harm === "SIGKILL") next = await startReceiver(port, databasePort());
      await mustSucceed(run("sender.js", [], environmentOfSender));
      await assertArrived(order, `${harm} at step ${at}`);
    } finally {
      for (const each of [receiver, next]) each.signal("SIGKILL");
      await proxy.close();
    }
    return steps.hasActed;
  };
  const count = await countSteps(async (steps) => {
    await newMessage();
    const [port = 0] = await freePorts(1);
    const proxy = await StepProxy.start(databasePort(), steps);
    const receiver = await startReceiver(port, proxy.port);
    await mustSucceed(run("sender.js", [], environment(databasePort(), { RECEIVER: urlAt(port) })));
    receiver.signal("SIGKILL");
    await proxy.close();
  });
  await atEachStep(count, 1, work);
}
