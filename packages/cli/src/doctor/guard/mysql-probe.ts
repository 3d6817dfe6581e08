/** MySQL and MariaDB for `doctor --guard`: scratch tables for a fence in the row and for a table of fences. */
import { mysqlFenceTableSql, mysqlFences, mysqlGuard } from "@holdfast/fence/mysql";
import type { MysqlPool } from "@holdfast/fence/mysql";
import type { Finding } from "../finding.js";
import { ok, warning } from "../finding.js";
import type { ProbedStore, StoredProbe } from "./examine-guard.js";
import type { ProbePlace } from "./probe-store.js";

interface Pool extends MysqlPool {
  query(sql: string): Promise<readonly [unknown, ...unknown[]]>;
  end(): Promise<void>;
}

export async function probeMysql({ url, scratch, driver, timeoutMs }: ProbePlace): Promise<ProbedStore> {
  const { createPool } = driver as { readonly createPool: (options: object) => Pool };
  const pool = createPool({ uri: url, connectionLimit: 4, connectTimeout: timeoutMs });
  const table = `${scratch}_fences`;
  const value = async (sql: string): Promise<string | null> =>
    textOf(Object.values((await rowsOf(pool, sql))[0] ?? {})[0]);
  const stored = async (sql: string): Promise<StoredProbe> => {
    const [row] = await rowsOf(pool, sql);
    return { text: textOf(row?.["body"]), token: textOf(row?.["token"]) };
  };
  const remove = async (): Promise<void> => {
    await pool.query(`DROP TABLE IF EXISTS ${scratch}, ${table}`);
  };
  try {
    await pool.query(
      `CREATE TABLE ${scratch} (id INT PRIMARY KEY, body TEXT, fence BIGINT UNSIGNED NOT NULL DEFAULT 0) ENGINE = InnoDB`,
    );
    await pool.query(`INSERT INTO ${scratch} (id) VALUES (1), (2)`);
    await pool.query(mysqlFenceTableSql({ table }));
    const rows = mysqlGuard(pool, { table: scratch, key: "id", fence: "fence" });
    const fences = mysqlFences(pool, { table });
    return {
      name: `MySQL ${await value("SELECT VERSION()")}`,
      probes: [
        {
          form: `a fence in the row (${scratch})`,
          write: async (token, text) => void (await rows.update({ resource: scratch, token }, 1, { body: text })),
          stored: () => stored(`SELECT body, CAST(fence AS CHAR) AS token FROM ${scratch} WHERE id = 1`),
        },
        {
          form: "a table of fences (made for this)",
          write: (token, text) =>
            fences.transaction({ resource: scratch, token }, async (tx) => {
              await tx.execute(`UPDATE ${scratch} SET body = ? WHERE id = 2`, [text]);
            }),
          stored: () =>
            stored(`SELECT body, (SELECT CAST(token AS CHAR) FROM ${table}) AS token FROM ${scratch} WHERE id = 2`),
        },
      ],
      settings: [durability(await value("SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)"))],
      close: async () => {
        await remove();
        await pool.end();
      },
    };
  } catch (error) {
    await remove().catch(() => undefined);
    await pool.end();
    throw error;
  }
}

async function rowsOf(pool: Pool, sql: string): Promise<Record<string, unknown>[]> {
  return (await pool.query(sql))[0] as Record<string, unknown>[];
}

function durability(flush: string | null): Finding {
  if (flush === "1") return ok("durable", "a write that was acknowledged is on the disk, and its fence with it");
  return warning("durable", {
    node: null,
    seen: `innodb_flush_log_at_trx_commit is ${flush}`,
    why: "After a crash the last writes are forgotten, and their fences with them: an old holder may get in.",
    mend: "set it to 1 where guarded data lies",
  });
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
