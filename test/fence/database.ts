/** The tables of these tests, and what is asked of them again and again. */
import { after, before } from "node:test";
import { StaleTokenError } from "@holdfast/fence";
import type { PostgresFences, PostgresGuard } from "@holdfast/fence/postgres";
import { fenceTableSql, postgresFences, postgresGuard } from "@holdfast/fence/postgres";
import type { TestPool, TestPostgres } from "../harness/postgres.js";

export interface Database {
  postgres: TestPostgres;
  pool: TestPool;
  documents: PostgresGuard;
  fences: PostgresFences;
}

export const tokenMax = Number.MAX_SAFE_INTEGER;

/** Tables `documents` (with a history that a trigger keeps, in the order of the writes to a row) and `revisions`. */
const schema = `
  CREATE TABLE documents (id integer PRIMARY KEY, body text, edits integer NOT NULL DEFAULT 0, fence bigint);
  CREATE TABLE revisions (document integer NOT NULL, body text NOT NULL);
  CREATE TABLE history (at bigserial PRIMARY KEY, id integer NOT NULL, fence bigint, body text);
  CREATE FUNCTION keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO history (id, fence, body) VALUES (NEW.id, NEW.fence, NEW.body);
      RETURN NEW;
    END $$;
  CREATE TRIGGER history AFTER UPDATE ON documents FOR EACH ROW EXECUTE FUNCTION keep_history();
  ${fenceTableSql()}`;

/** A database with the tables of these tests, started before them and stopped after them. */
export function useDatabase(start: () => Promise<TestPostgres>): Database {
  const database = {} as Database;
  before(async () => {
    database.postgres = await start();
    database.pool = database.postgres.pool();
    await database.pool.query(schema);
    database.documents = postgresGuard(database.pool, { table: "documents", key: "id", fence: "fence" });
    database.fences = postgresFences(database.pool);
  });
  after(() => database.postgres?.stop());
  return database;
}

let lastId = 0;

/** A fresh document, so that tests don't meet. Its fence is NULL, as in a table that got its fence column later. */
export async function newDocument(pool: TestPool, fence: number | null = null): Promise<number> {
  lastId += 1;
  await pool.query("INSERT INTO documents (id, body, fence) VALUES ($1, 'first', $2)", [lastId, fence]);
  return lastId;
}

/** The row, its int8 as text. */
export async function storedDocument(pool: TestPool, id: number): Promise<unknown> {
  const { rows } = await pool.query("SELECT body, edits, fence::text FROM documents WHERE id = $1", [id]);
  return rows[0];
}

export function isStale(presented: number, highest: number): (error: unknown) => boolean {
  return (error) => error instanceof StaleTokenError && error.presented === presented && error.highest === highest;
}
