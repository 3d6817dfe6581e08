/**
 * The programs of docs/fencing.md for stores other than PostgreSQL run as they stand there, each at its real store; addresses are exchanged, and
 * what the page takes for granted is put before: a connection to the cluster, a framework. examples.test.ts runs those that are whole.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { driver, skipWithoutDriver } from "../fence/drivers.js";
import { mysqlPool, skipWithoutMariadb, startMariadb } from "../fence/mariadb-server.js";
import { redisClient, skipWithoutRedis, startRedis } from "../fence/redis-server.js";
import { s3Options } from "../fence/s3-client.js";
import { startS3Server } from "../fence/s3-server.js";
import { sqliteDrivers } from "../fence/stores/sqlite.js";
import { TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";

const top = fileURLToPath(new URL("../../../", import.meta.url));
const limitMs = 60_000;

/** By heading, in their order. */
const programs = new Map<string, string[]>();
for (const section of readFileSync(join(top, "docs/fencing.md"), "utf8").split(/^## /m)) {
  const heading = section.slice(0, section.indexOf("\n"));
  const found = [...section.matchAll(/(<!-- runs -->\n)?^```js\n(.*?)^```$/gms)].filter(
    ([, runs]) => runs === undefined,
  );
  if (found.length > 0)
    programs.set(
      heading,
      found.map((match) => match[2] ?? ""),
    );
}
/** How many each has. Another one needs a test of its own here. */
const tested: Readonly<Record<string, number>> = {
  "MySQL and MariaDB": 1,
  "Redis: one script per call": 1,
  SQLite: 1,
  Files: 1,
  "S3-compatible object storage": 1,
  HTTP: 2,
  "Resources that can't check": 1,
  "When a token is refused": 1,
};

/** The page's program under this heading. Each exchange must find what it is for. */
function programOf(heading: string, at: number, exchanges: Readonly<Record<string, string>> = {}): string {
  let program = programs.get(heading)?.[at] ?? assert.fail(`no program ${at} under ${heading}`);
  for (const [there, here] of Object.entries(exchanges)) {
    assert.ok(program.includes(there), `${heading} no longer has ${there}`);
    program = program.replaceAll(there, here);
  }
  return program;
}

let cluster: TestCluster;
let folder = "";

before(async () => {
  cluster = await TestCluster.start({ nodes: 1 });
  await cluster.raise();
  const url = `http://${cluster.endpoints[0]}/v1/keys`;
  await until("there is a key", async () => ((await (await fetch(url)).json()) as { keys: unknown[] }).keys.length > 0);
  folder = mkdtempSync(join(tmpdir(), "holdfast-fencing-"));
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, "@hono"), { recursive: true });
  mkdirSync(join(modules, "@aws-sdk"));
  symlinkSync(join(top, "node_modules/@holdfast"), join(modules, "@holdfast"));
  const drivers = ["mysql2", "redis", "@aws-sdk/client-s3", "express", "fastify", "hono", "@hono/node-server"];
  for (const name of drivers) symlinkSync(join(top, "test/drivers/node_modules", name), join(modules, name));
  symlinkSync(join(top, "test/stores/node_modules/better-sqlite3"), join(modules, "better-sqlite3"));
});

after(async () => {
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
  await cluster?.close();
});

/** What the page takes for granted. */
const connected = `
  import { connect } from "@holdfast/client";
  import assert from "node:assert/strict";
  const holdfast = await connect();
`;

/** A process of its own that has to end with 0, in the folder. */
async function run(name: string, ...parts: readonly string[]): Promise<void> {
  const file = join(folder, `${name}.mjs`);
  writeFileSync(file, [connected, ...parts, "await holdfast.close();"].join("\n"));
  const env = { ...process.env, HOLDFAST_ENDPOINTS: cluster.endpoints.join(",") };
  const [error, output] = await new Promise<[Error | null, string]>((resolve) => {
    execFile(process.execPath, [file], { env, cwd: folder, timeout: limitMs }, (failure, stdout, stderr) =>
      resolve([failure, `${stdout}${stderr}`]),
    );
  });
  assert.equal(error, null, output);
}

describe("docs/fencing.md's programs", { timeout: 240_000 }, () => {
  test("MySQL and MariaDB", { skip: skipWithoutMariadb() }, mysqlTest);
  test("Redis", { skip: skipWithoutRedis() }, redisTest);
  test("SQLite", { skip: sqliteDrivers.find(({ name }) => name === "better-sqlite3")?.skip ?? true }, sqliteTest);
  test("files", filesTest);
  test("S3", { skip: skipWithoutDriver("@aws-sdk/client-s3") }, s3Test);
  test("HTTP, on each framework", { skip: skipWithoutDriver("fastify") }, httpTest);
  test("lock-delay", () => run("delay", programOf("Resources that can't check", 0), "await lock.release();"));

  test("are all run here, or by themselves", () => {
    const found = [...programs].map(([heading, { length }]) => [heading, length]);
    assert.deepEqual(Object.fromEntries(found), tested);
  });
});

async function mysqlTest(): Promise<void> {
  const mariadb = await startMariadb();
  const pool = mysqlPool(mariadb.url);
  try {
    await pool.query(
      "CREATE TABLE documents (id INT PRIMARY KEY, body TEXT, fence BIGINT UNSIGNED NOT NULL DEFAULT 0)",
    );
    await pool.query("INSERT INTO documents (id, body) VALUES (42, 'some')");
    await pool.query("CREATE TABLE bookings (amount INT)");
    await pool.query("INSERT INTO bookings VALUES (0), (5)");
    const program = programOf("MySQL and MariaDB", 0, { "mysql://user:password@localhost/app": mariadb.url });
    await run("mysql", program, "await pool.end();");
    const [documents] = await pool.query("SELECT body, fence > 0 AS fenced FROM documents");
    assert.deepEqual(documents, [{ body: "some more", fenced: 1 }]);
    const [left] = await pool.query("SELECT amount, CAST(resource AS CHAR) AS resource FROM bookings, holdfast_fences");
    assert.equal(JSON.stringify(left), '[{"amount":5,"resource":"bookings"}]');
  } finally {
    await pool.end();
    await mariadb.stop();
  }
}

async function redisTest(): Promise<void> {
  const redis = await startRedis();
  const client = await redisClient(redis.url);
  try {
    await client.sendCommand(["SET", "doc:42:text", "some"]);
    const address = { "createClient()": `createClient({ url: ${JSON.stringify(redis.url)} })` };
    const reporting = programOf("When a token is refused", 0);
    await run("redis", programOf("Redis: one script per call", 0, address), "redis.destroy();");
    const values: unknown[] = [];
    for (const key of ["doc:42:text", "{acct}:1", "{acct}:2"]) values.push(await client.sendCommand(["GET", key]));
    assert.deepEqual(values, ["some more", "50", "150"]);
    assert.deepEqual(await client.sendCommand(["LRANGE", "doc:42:log", "0", "-1"]), ["edited"]);
    await run(
      "reporting",
      `import { redisGuard } from "@holdfast/fence/redis";
       import { createClient } from "redis";
       const warnings = [];
       const logger = { warn: (report) => warnings.push(report) };
       const redis = await ${address["createClient()"]}.connect();`,
      reporting,
      `await documents.set({ resource: "doc:7", token: 9 }, "doc:7", "new");
       for (let time = 0; time < 3; time += 1)
         await assert.rejects(documents.set({ resource: "doc:7", token: 8, holder: "w" }, "doc:7", "late"));
       assert.match(metrics.prometheusText(), /^holdfast_fence_rejected_total\\{guard="redis",class="doc"\\} 3$/m);
       assert.deepEqual(warnings[2], { guard: "redis", resource: "doc:7", holder: "w", presented: 8, highest: 9 });
       redis.destroy();`,
    );
  } finally {
    client.destroy();
    await redis.stop();
  }
}

async function sqliteTest(): Promise<void> {
  const file = join(folder, "app.db");
  const Database = driver("better-sqlite3") as new (
    file: string,
  ) => {
    exec(sql: string): unknown;
    prepare(sql: string): { all(): unknown[] };
    close(): void;
  };
  const database = new Database(file);
  try {
    database.exec(`
      CREATE TABLE documents (id INTEGER PRIMARY KEY, body TEXT, fence INTEGER NOT NULL DEFAULT 0);
      INSERT INTO documents (id, body) VALUES (42, 'some');
      CREATE TABLE bookings (amount INTEGER); INSERT INTO bookings VALUES (0), (5)`);
    await run("sqlite", programOf("SQLite", 0), "db.close();");
    const rows = database
      .prepare("SELECT body, fence = token AS fenced, amount FROM documents, bookings, holdfast_fences")
      .all();
    assert.deepEqual(rows, [{ body: "some more", fenced: 1, amount: 5 }]);
  } finally {
    database.close();
  }
}

async function filesTest(): Promise<void> {
  const directory = { "/srv/state": join(folder, "state") };
  await run("files", programOf("Files", 0, directory), 'assert.equal(await files.readNewest("doc:42"), null);');
}

async function s3Test(): Promise<void> {
  const server = await startS3Server();
  try {
    const here = {
      '{ region: "eu-central-1" }': JSON.stringify(s3Options(server.address)),
      'bucket: "documents"': 'bucket: "notes"',
    };
    await run("s3", programOf("S3-compatible object storage", 0, here));
    assert.deepEqual([...server.objects.keys()], ["holdfast/doc_3a42/fence"]);
  } finally {
    await server.stop();
  }
}

/** Each route is written under a lock, and then under the lock's former sequencer. */
async function httpTest(): Promise<void> {
  const service = programOf("HTTP", 1, {
    '"locks-1:7101,locks-2:7101,locks-3:7101"': JSON.stringify(cluster.endpoints.join(",")),
    "createServer((request": "const server = createServer((request",
  });
  const caller = programOf("HTTP", 0, { "http://documents.internal": "http://127.0.0.1:${port}" }).replaceAll(
    /"(http:\/\/127[^"]*)"/g,
    "`$1`",
  );
  await run(
    "http",
    `import { createServer } from "node:http";
     import express from "express";
     import Fastify from "fastify";
     import { Hono } from "hono";
     import { serve as serveHono } from "@hono/node-server";
     import { Guard } from "@holdfast/fence";
     const app = express();
     app.use(express.text());
     const fastify = Fastify({ forceCloseConnections: true });
     const hono = new Hono();
     const notes = new Guard(memoryRegister());
     const documents = { update: (fence, id, { body }) => notes.write(fence, body) };
     const save = async (fence, body) => { await notes.write(fence, body); return { saved: true }; };
     const print = async () => ({ printed: true });`,
    service,
    `const ports = {};
     const listeners = { express: createServer(app), node: server, hono: serveHono({ fetch: hono.fetch, port: 0 }) };
     for (const [name, each] of Object.entries(listeners)) {
       if (name !== "hono") each.listen(0, "127.0.0.1");
       if (!each.listening) await new Promise((resolve) => each.once("listening", resolve));
       ports[name] = each.address().port;
     }
     await fastify.listen({ port: 0, host: "127.0.0.1" });
     ports.fastify = fastify.server.address().port;`,
    `import { fencedFetch as send } from "@holdfast/fence/http";
     const routes = [
       ["express", "docs/1", "doc:1"], ["express", "printers/1", "printer:1"], ["fastify", "docs/2", "doc:2"],
       ["fastify", "printers/3", "doc:3"], ["hono", "docs/4", "doc:4"], ["hono", "printers/4", "printer:4"], ["node", "5", "printer:5"],
     ];
     for (const [name, route, resource] of routes) {
       const url = \`http://127.0.0.1:\${ports[name]}/\${route}\`;
       const init = { method: "PUT", body: name === "hono" ? '"text"' : "text", headers: { "content-type": "text/plain" } };
       const late = await holdfast.request(resource, (lock) => lock.sequencer());
       await holdfast.request(resource, async (lock) => {
         const answer = await send(lock, url, init);
         assert.ok(answer.ok, \`\${name} \${route}: \${answer.status} \${await answer.text()}\`);
       });
       await assert.rejects(send({ sequencer: async () => late }, url, init), { code: "stale_token" }, \`\${name} \${route}\`);
       const bare = await fetch(url, init);
       assert.equal(bare.status, 401, \`\${name} \${route}\`);
     }`,
    `const { express: port } = ports;
     const text = "text";
     ${caller}
     for (const each of Object.values(listeners)) { each.closeAllConnections(); each.close(); }
     await fastify.close();`,
  );
}
