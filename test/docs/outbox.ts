/**
 * docs/examples/outbox, as it stands there but for shorter times, on real processes. Worker, sender and receiver have a file of tests each:
 * they are killed and paused at each message that passes between them and what they talk to.
 */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { TestCluster } from "../harness/cluster.js";
import { debianPostgres } from "../harness/postgres.js";
import type { TestPool, TestPostgres } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import { ExampleProcess, killAll } from "./example-process.js";
import { Steps } from "./step-proxy.js";

const top = fileURLToPath(new URL("../../../", import.meta.url));
export const cents = 250;
/** What opens a connection to the database takes six messages, and changes nothing. */
const openingSteps = 7;
const harms = ["SIGKILL", "SIGSTOP"] as const;
export type Harm = (typeof harms)[number];

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

export function environment(databasePort: number, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { hostname, username, password, pathname } = new URL(postgres.url);
  const database = { PGHOST: hostname, PGPORT: `${databasePort}`, PGUSER: username, PGPASSWORD: password };
  return { ...database, PGDATABASE: pathname.slice(1), HOLDFAST_ENDPOINTS: cluster.endpoints.join(","), ...more };
}

export const databasePort = (): number => Number(new URL(postgres.url).port);

export function run(program: string, words: readonly string[], env: Readonly<Record<string, string>>): ExampleProcess {
  return new ExampleProcess(join(folder, program), words, env);
}

/** Runs it again until it succeeds, as whoever is behind it would: on a busy machine its own lease or time limit may run out as well. */
export async function succeed(start: () => ExampleProcess): Promise<void> {
  await until(
    "the program succeeds",
    async () => {
      const process = start();
      const end = await process.ended();
      if (end !== 0) throw new Error(process.output);
      return true;
    },
    120_000,
  );
}

/** How many steps `program` takes when nothing happens to it. */
export async function countSteps(body: (steps: Steps) => Promise<void>): Promise<number> {
  const steps = new Steps();
  await body(steps);
  assert.ok(steps.passed > openingSteps, `${steps.passed} steps`);
  return steps.passed;
}

export async function newOrder(): Promise<number> {
  lastOrder += 1;
  const order = lastOrder;
  await pool.query("INSERT INTO orders VALUES ($1)", [order]);
  await pool.query("INSERT INTO items VALUES ($1, $2), ($1, $2)", [order, cents / 2]);
  return order;
}

/** An order that a worker has charged, and whose message lies in the outbox. */
export async function newMessage(): Promise<number> {
  const order = await newOrder();
  await pool.query("UPDATE orders SET state = 'charged' WHERE id = $1", [order]);
  await pool.query("INSERT INTO outbox (key, body) VALUES ($1, $2)", [`charge:${order}`, { order, cents }]);
  return order;
}

/** The messages of one order, and whether each was received. */
export async function messagesOf(order: number): Promise<unknown> {
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
export async function atEachStep(
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

/** What the programs need, and a fresh outbox, for the tests of one file. */
export function useOutbox(): void {
  before(async () => {
    [cluster, postgres] = await Promise.all([TestCluster.start({ nodes: 1 }), debianPostgres()]);
    folder = copyExample();
    pool = postgres.pool();
    await pool.query(readFileSync(join(folder, "schema.sql"), "utf8"));
  });

  after(async () => {
    killAll();
    if (folder !== "") rmSync(folder, { recursive: true, force: true });
    await postgres?.stop();
    await cluster?.close();
  });
}

export async function startReceiver(port: number, database: number): Promise<ExampleProcess> {
  const receiver = run("receiver.js", [], environment(database, { PORT: `${port}` }));
  await until("the receiver listens", () => {
    if (receiver.isOver) throw new Error(receiver.output);
    return receiver.output.includes("listening");
  });
  return receiver;
}

export const urlAt = (port: number): string => `http://127.0.0.1:${port}/charges`;

export async function assertArrived(order: number, what: string): Promise<void> {
  const message = { body: { order, cents }, sent: true, received: true, state: "charged" };
  assert.deepEqual(await messagesOf(order), [message], what);
  await assertAppliedOnce();
}
