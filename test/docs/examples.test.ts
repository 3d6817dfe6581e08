/**
 * The documents' programs run: each block of JavaScript under the line `<!-- runs -->`, as a process of its own that has to end with 0.
 * Whoever writes one lets it throw when something isn't as the text says. They have HOLDFAST_ENDPOINTS; endpoints that a program
 * names itself are exchanged for the test's.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { TestCluster } from "../harness/cluster.js";
import { debianPostgres, skipWithoutDebianPostgres } from "../harness/postgres.js";
import type { TestPool, TestPostgres } from "../harness/postgres.js";

const top = fileURLToPath(new URL("../../../", import.meta.url));
const limitMs = 60_000;

interface Example {
  readonly name: string;
  readonly program: string;
}

function textOf(document: string): string {
  return readFileSync(join(top, document), "utf8");
}

function examplesOf(document: string): Example[] {
  const text = textOf(document);
  return [...text.matchAll(/^<!-- runs -->\n```js\n(.*?)^```$/gms)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length;
    return { name: `${document}:${line}`, program: match[1] ?? "" };
  });
}

/** Every marked block is one that was found: a marker that stands somewhere else would run nothing. */
function markersOf(document: string): number {
  return textOf(document).split("<!-- runs -->").length - 1;
}

interface End {
  readonly code: number | string | null;
  readonly output: string;
}

function run(file: string, environment: Readonly<Record<string, string>>): Promise<End> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...environment }, timeout: limitMs };
    execFile(process.execPath, [file], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? null), output: `${stdout}${stderr}` });
    });
  });
}

/** A folder in which the programs find the packages, and the driver if it is installed. */
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-examples-"));
  const modules = join(folder, "node_modules");
  mkdirSync(modules);
  symlinkSync(join(top, "node_modules/@holdfast"), join(modules, "@holdfast"));
  symlinkSync(join(top, "test/drivers/node_modules/pg"), join(modules, "pg"));
  return folder;
}

let cluster: TestCluster;
let folder = "";

before(async () => {
  cluster = await TestCluster.start({ nodes: 1 });
  folder = newFolder();
});

after(async () => {
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
  await cluster?.close();
});

function testsOf(document: string, environment: () => Readonly<Record<string, string>>): void {
  const examples = examplesOf(document);
  test(`${document} has some, and each marker stands before one`, () => {
    assert.ok(examples.length > 0);
    assert.equal(examples.length, markersOf(document));
  });
  for (const { name, program } of examples) {
    test(name, async () => {
      const file = join(folder, `${name.replaceAll(/\W/g, "-")}.mjs`);
      const endpoints = `endpoints: ${JSON.stringify(cluster.endpoints)}`;
      writeFileSync(file, program.replaceAll(/endpoints: \[[^\]]*\]/g, endpoints));
      const end = await run(file, { HOLDFAST_ENDPOINTS: cluster.endpoints.join(","), ...environment() });
      assert.equal(end.code, 0, end.output);
    });
  }
}

describe("programs that need a cluster only", () => {
  for (const document of ["README.md", "docs/client.md", "docs/tutorial.md", "docs/recipes.md"])
    testsOf(document, () => ({}));
});

describe("programs that need a database too", { skip: skipWithoutDebianPostgres() }, () => {
  let postgres: TestPostgres;
  let pool: TestPool;

  before(async () => {
    postgres = await debianPostgres();
    pool = postgres.pool();
    await pool.query(`
      CREATE TABLE documents (id integer PRIMARY KEY, body text NOT NULL);
      INSERT INTO documents VALUES (42, 'some');
      ${/^ {4}(ALTER TABLE documents .*;)$/m.exec(textOf("docs/fencing.md"))?.[1] ?? "the ALTER TABLE is gone"};
      CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL);
      INSERT INTO accounts VALUES (1, 200), (2, 0);
      CREATE TABLE bookings (account integer NOT NULL, amount integer NOT NULL);
      INSERT INTO bookings VALUES (1, 0);`);
  });

  after(() => postgres?.stop());

  testsOf("docs/fencing.md", () => {
    const { hostname, port, username, password, pathname } = new URL(postgres.url);
    const names = { PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password };
    return { ...names, PGDATABASE: pathname.slice(1) };
  });

  test("and have done what they say", async () => {
    const { rows: documents } = await pool.query("SELECT body, fence > 0 AS fenced FROM documents");
    assert.deepEqual(documents, [{ body: "some more", fenced: true }]);
    const { rows: accounts } = await pool.query("SELECT balance FROM accounts ORDER BY id");
    assert.deepEqual(accounts, [{ balance: 150 }, { balance: 50 }]);
    const { rows: bookings } = await pool.query("SELECT * FROM bookings");
    assert.deepEqual(bookings, [{ account: 1, amount: -50 }]);
    const { rows: fences } = await pool.query("SELECT resource FROM holdfast_fences ORDER BY resource");
    assert.deepEqual(fences, [{ resource: "acct:1" }, { resource: "acct:2" }, { resource: "bookings" }]);
  });
});
