/** Both PostgreSQL guards behind the interface of the one suite. */
import { readFileSync } from "node:fs";
import type { ReportingOptions } from "@holdfast/fence";
import { postgresFences, postgresGuard } from "@holdfast/fence/postgres";
import type { PostgresTransaction } from "@holdfast/fence/postgres";
import { debianPostgres, skipWithoutDebianPostgres } from "../../harness/postgres.js";
import type { TestPool, TestPostgres } from "../../harness/postgres.js";
import { unavailable } from "../guarded-store.js";
import type { GuardedStore, NamedFence, Place, StoreKind, Stored } from "../guarded-store.js";
import { postgresPool, skipWithoutPgbouncer, startPgbouncer, startPostgres } from "../postgres-server.js";

const schema = `
  CREATE TABLE notes (name text PRIMARY KEY, body text, lines text[] NOT NULL DEFAULT '{}', fence bigint);
  ${migration("001-fence-table")}`;

export async function postgresPlace(start: () => Promise<TestPostgres>): Promise<Place> {
  const postgres = await start();
  await postgres.pool({ max: 1 }).query(schema);
  return { address: postgres.url, stop: () => postgres.stop(), crash: unavailable };
}

/** A server of its own, which can be killed, unless one was named. */
async function startedPlace(): Promise<Place> {
  if (!crashes) return postgresPlace(debianPostgres);
  const server = await startPostgres();
  await withPool(server.url, schema);
  return { address: server.url, stop: server.stop, crash: server.crash };
}

/** PostgreSQL that refuses what shows no fence, behind PgBouncer in transaction mode; it is the pooler that crashes. */
function pooledPlace(refuse: string): () => Promise<Place> {
  return async () => {
    const server = await startPostgres();
    await withPool(server.url, `${schema} ${migration("002-refuse-unfenced")} ${refuse}`);
    const pooler = await startPgbouncer(server.url);
    const stop = async (): Promise<void> => {
      await pooler.stop();
      await server.stop();
    };
    return { address: pooler.url, stop, crash: pooler.crash };
  };
}

async function withPool(url: string, sql: string): Promise<void> {
  const pool = postgresPool(url, 1);
  await pool.query(sql);
  await pool.end();
}

/** One of the files that the package ships. */
export function migration(name: string): string {
  return readFileSync(new URL(import.meta.resolve(`@holdfast/fence/sql/postgres/${name}.sql`)), "utf8");
}

const crashes = process.env["HOLDFAST_TEST_POSTGRES"] === undefined;
const common = {
  guard: "postgres",
  changesSeveral: true,
  crashes,
  skip: skipWithoutDebianPostgres(),
  start: startedPlace,
};

const pooled = { crashes: true, skip: skipWithoutPgbouncer() };

/** Adds a line by a read and a write, as an application would. */
async function addLine(tx: PostgresTransaction, name: string, line: string): Promise<void> {
  const { rows } = await tx.query<{ lines: string[] }>("SELECT lines FROM notes WHERE name = $1", [name]);
  const lines = [...(rows[0]?.lines ?? []), line];
  await tx.query(
    "INSERT INTO notes (name, lines) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET lines = EXCLUDED.lines",
    [name, lines],
  );
}

async function storedBy(pool: TestPool, text: string, name: string): Promise<Stored> {
  const { rows } = await pool.query(text, [name]);
  const row = rows[0] as { body: string | null; lines: string[] | null; token: string | null } | undefined;
  return { body: row?.body ?? null, lines: row?.lines ?? [], token: tokenOf(row?.token) };
}

/** pg gives an int8 as text. */
function tokenOf(text: string | null | undefined): number | null {
  return text === null || text === undefined ? null : Number(text);
}

export const postgresRows: StoreKind = {
  ...common,
  kind: "PostgreSQL, fence in the row",
  remembersRemoved: false,
  async open(address: string, reporting: ReportingOptions): Promise<GuardedStore> {
    const pool = postgresPool(address);
    const notes = postgresGuard(pool, { table: "notes", key: "name", fence: "fence", ...reporting });
    const setBody = "UPDATE notes SET body = $2 WHERE name = $1";
    return {
      write: async (fence, body) => void (await notes.upsert(fence, fence.resource, { body })),
      read: async (fence) => (await notes.read<{ body: string | null }>(fence, fence.resource)).body,
      append: async (fence, line) => {
        await pool.query("INSERT INTO notes (name) VALUES ($1) ON CONFLICT DO NOTHING", [fence.resource]);
        await notes.transaction(fence, (tx) => addLine(tx, fence.resource, line));
      },
      remove: (fence) =>
        notes.transaction(fence, async (tx) => {
          await tx.query("DELETE FROM notes WHERE name = $1", [fence.resource]);
        }),
      writeAll: async ([first, ...others], body) => {
        if (first === undefined) return;
        for (const { resource } of [first, ...others]) {
          await pool.query("INSERT INTO notes (name) VALUES ($1) ON CONFLICT DO NOTHING", [resource]);
        }
        await notes.transaction(first, async (tx) => {
          for (const fence of others) await notes.take(tx, fence, fence.resource);
          for (const { resource } of [first, ...others]) await tx.query(setBody, [resource, body]);
        });
      },
      stored: (name) => storedBy(pool, "SELECT body, lines, fence::text AS token FROM notes WHERE name = $1", name),
      close: () => pool.end(),
    };
  },
};

export const postgresFenceTable: StoreKind = {
  ...common,
  kind: "PostgreSQL, table of fences",
  remembersRemoved: true,
  async open(address: string, reporting: ReportingOptions): Promise<GuardedStore> {
    const pool = postgresPool(address);
    const fences = postgresFences(pool, reporting);
    const setBody =
      "INSERT INTO notes (name, body) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET body = EXCLUDED.body";
    const writeAll = (of: readonly NamedFence[], body: string): Promise<void> =>
      fences.transaction(of, async (tx) => {
        for (const { resource } of of) await tx.query(setBody, [resource, body]);
      });
    return {
      write: (fence, body) => writeAll([fence], body),
      read: (fence) =>
        fences.transaction(fence, async (tx) => {
          const { rows } = await tx.query<{ body: string }>("SELECT body FROM notes WHERE name = $1", [fence.resource]);
          return rows[0]?.body ?? null;
        }),
      append: (fence, line) => fences.transaction(fence, (tx) => addLine(tx, fence.resource, line)),
      remove: (fence) =>
        fences.transaction(fence, async (tx) => {
          await tx.query("DELETE FROM notes WHERE name = $1", [fence.resource]);
        }),
      writeAll,
      stored: (name) =>
        storedBy(
          pool,
          'SELECT body, lines, token::text AS token FROM (SELECT $1::text COLLATE "C" AS name) AS wanted ' +
            "LEFT JOIN notes ON notes.name = wanted.name LEFT JOIN holdfast_fences ON resource = wanted.name",
          name,
        ),
      close: () => pool.end(),
    };
  },
};

export const pooledKinds: readonly StoreKind[] = [
  {
    ...postgresRows,
    ...pooled,
    kind: "PostgreSQL behind PgBouncer, fence in the row",
    // Its `append` makes the row before it takes the fence, as programs do whose rows are made without a lock.
    start: pooledPlace("SELECT holdfast_guard_rows('notes', 'fence', plain_inserts => true)"),
  },
  {
    ...postgresFenceTable,
    ...pooled,
    kind: "PostgreSQL behind PgBouncer, table of fences",
    start: pooledPlace("SELECT holdfast_guard_table('notes', '', 'name')"),
  },
];
