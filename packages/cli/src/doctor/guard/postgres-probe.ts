/** PostgreSQL for `doctor --guard`: a scratch table for a fence in the row, and the table of fences, the real one where there is one. */
import { fenceTableSql, postgresFences, postgresGuard } from "@holdfast/fence/postgres";
import type { PostgresPool, PostgresResult } from "@holdfast/fence/postgres";
import type { Finding } from "../finding.js";
import { ok, warning } from "../finding.js";
import type { GuardProbe, ProbedStore } from "./examine-guard.js";
import type { ProbePlace } from "./probe-store.js";

interface Pool extends PostgresPool {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

export async function probePostgres({ url, scratch, driver, timeoutMs }: ProbePlace): Promise<ProbedStore> {
  const { Pool } = driver as { readonly Pool: new (config: object) => Pool };
  const pool = new Pool({
    connectionString: url,
    max: 4,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  pool.on("error", () => {}); // told by the query that meets it
  const value = async (text: string, values: unknown[] = []): Promise<string | null> => {
    const [row] = (await pool.query(text, values)).rows;
    return textOf(Object.values(row ?? {})[0]);
  };
  try {
    const hasFences = (await value("SELECT to_regclass('holdfast_fences')::text")) !== null;
    const table = hasFences ? "holdfast_fences" : `${scratch}_fences`;
    await pool.query(`CREATE TABLE ${scratch} (id integer PRIMARY KEY, body text, fence bigint NOT NULL DEFAULT 0)`);
    await pool.query(`INSERT INTO ${scratch} (id) VALUES (1), (2)`);
    if (!hasFences) await pool.query(fenceTableSql({ table }));
    return {
      name: `PostgreSQL ${await value("SHOW server_version")}`,
      probes: [rowProbe(pool, scratch), tableProbe(pool, scratch, table, hasFences)],
      settings: await settingsOf(value),
      close: async () => {
        if (hasFences) await pool.query(`DELETE FROM ${table} WHERE resource = $1`, [scratch]);
        else await pool.query(`DROP TABLE ${table}`);
        await pool.query(`DROP TABLE ${scratch}`);
        await pool.end();
      },
    };
  } catch (error) {
    await pool.query(`DROP TABLE IF EXISTS ${scratch}, ${scratch}_fences`).catch(() => undefined);
    await pool.end();
    throw error;
  }
}

function rowProbe(pool: Pool, scratch: string): GuardProbe {
  const guard = postgresGuard(pool, { table: scratch, key: "id", fence: "fence" });
  return {
    form: `a fence in the row (${scratch})`,
    write: async (token, text) => void (await guard.update({ resource: scratch, token }, 1, { body: text })),
    stored: async () => {
      const { rows } = await pool.query(`SELECT body, fence::text AS token FROM ${scratch} WHERE id = 1`);
      return { text: textOf(rows[0]?.["body"]), token: textOf(rows[0]?.["token"]) };
    },
  };
}

function tableProbe(pool: Pool, scratch: string, table: string, isReal: boolean): GuardProbe {
  const fences = postgresFences(pool, { table });
  const stored = `SELECT body, (SELECT token::text FROM ${table} WHERE resource = $1) AS token FROM ${scratch} WHERE id = 2`;
  return {
    form: isReal ? `the table of fences (${table})` : "a table of fences (made for this)",
    write: (token, text) =>
      fences.transaction({ resource: scratch, token }, async (tx) => {
        await tx.query(`UPDATE ${scratch} SET body = $1 WHERE id = 2`, [text]);
      }),
    stored: async () => {
      const { rows } = await pool.query(stored, [scratch]);
      return { text: textOf(rows[0]?.["body"]), token: textOf(rows[0]?.["token"]) };
    },
  };
}

async function settingsOf(value: (text: string) => Promise<string | null>): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const isOff: string[] = [];
  for (const name of ["fsync", "synchronous_commit"]) if ((await value(`SHOW ${name}`)) === "off") isOff.push(name);
  if (isOff.length === 0)
    findings.push(ok("durable", "a write that was acknowledged is on the disk, and its fence with it"));
  else {
    const seen = `${isOff.join(" and ")} ${isOff.length === 1 ? "is" : "are"} off`;
    const why = "After a crash the last writes are forgotten, and their fences with them: an old holder may get in.";
    findings.push(
      warning("durable", { node: null, seen, why, mend: "switch it on for the roles that write guarded data" }),
    );
  }
  const guarded = await value(
    "SELECT string_agg(DISTINCT tgrelid::regclass::text, ', ') FROM pg_trigger WHERE tgname = 'holdfast_2_unfenced'",
  );
  const seen =
    guarded === null ? "none refuses writes without a fence by itself" : `refuse writes without a fence: ${guarded}`;
  return [...findings, ok("tables", seen)];
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
