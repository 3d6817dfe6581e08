// Compiled by test/fence/pg-types.test.ts: the types of the real driver fit the guards, which don't depend on it.
import { postgresFences, postgresGuard } from "@holdfast/fence/postgres";
import type { PostgresGuard, PostgresPool } from "@holdfast/fence/postgres";
import pg from "pg";

interface Document {
  id: number;
  body: string;
}

const pool = new pg.Pool();
const shape: PostgresPool = pool;
const documents: PostgresGuard = postgresGuard(pool, { table: "documents", key: "id", fence: "fence" });
/** A lock handle of the client's shape. */
const lock = { token: 33, fence: (name?: string) => ({ resource: name ?? "doc:42", token: 33 }) };

export async function save(changes: Partial<Document>): Promise<Document> {
  const document = await documents.update<Document>(lock, 42, changes);
  await documents.transaction(lock, 42, async (tx) => {
    const { rows } = await tx.query<Document>("SELECT * FROM documents WHERE id = $1", [document.id]);
    return rows[0]?.body;
  });
  const client = await pool.connect();
  await client.query("BEGIN");
  await postgresFences(shape).take(client, [lock.fence("acct:1"), lock.fence("acct:2")]);
  await client.query("COMMIT");
  client.release();
  return document;
}
