/** What a guarded table of PostgreSQL does with each kind of statement, on its way or past a way round: views, cascades, partitions. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { debianPostgres, embeddedPostgres, skipWithoutDebianPostgres } from "../harness/postgres.js";
import type { TestPool, TestPostgres } from "../harness/postgres.js";
import { skipWithoutDriver } from "./drivers.js";
import { migration } from "./stores/postgres.js";

const refused = { code: "23514", constraint: "holdfast_fence" };

interface Place {
  pool: TestPool;
  /** As `server_version_num`: MERGE came with 150000. */
  version: number;
  /** COPY from the server's side is for superusers. */
  mayCopy: boolean;
}

const schema = `
  CREATE TABLE books (id integer PRIMARY KEY);
  CREATE TABLE pages (
    id integer PRIMARY KEY, body text, fence bigint DEFAULT 0, book integer REFERENCES books ON UPDATE CASCADE ON DELETE CASCADE);
  CREATE VIEW seen_pages AS SELECT id, body FROM pages;
  CREATE TABLE bookings (amount integer PRIMARY KEY, note text);
  CREATE TABLE accounts (id integer PRIMARY KEY, balance integer);
  ${migration("001-fence-table")} ${migration("002-refuse-unfenced")}
  INSERT INTO books VALUES (1);
  INSERT INTO pages VALUES (1, 'first', 5, 1);
  INSERT INTO bookings VALUES (1, 'first');
  INSERT INTO accounts VALUES (1, 100);
  SELECT holdfast_guard_rows('pages', 'fence'), holdfast_guard_table('bookings', 'bookings'),
    holdfast_guard_table('accounts', 'acct:', 'id');`;

/** Rows as a program would give them to COPY, of which the test driver has none. */
function copied(table: string, ...rows: readonly string[]): string {
  return `COPY ${table} FROM PROGRAM 'printf "${rows.join("\\n")}\\n"' (FORMAT csv)`;
}

const toPages = "INSERT INTO pages (id, body, fence)";
const pagesMerge = (source: string, action: string): string =>
  `MERGE INTO pages USING (VALUES ${source}) AS s (id, body, fence) ON pages.id = s.id ${action}`;

/** Each is refused, and changes nothing. */
const unfencedPages = [
  "INSERT INTO pages (id, body) VALUES (2, 'x')",
  `${toPages} VALUES (2, 'x', 0)`,
  `${toPages} VALUES (2, 'x', NULL)`,
  `${toPages} VALUES (2, 'x', -7)`,
  `${toPages} VALUES (2, 'x', 9), (3, 'x', 0)`,
  `${toPages} SELECT 2, 'x', 0`,
  "INSERT INTO pages (id, body) VALUES (1, 'x') ON CONFLICT DO NOTHING",
  "INSERT INTO pages (id, body) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body",
  // Shown, and not compared: neither a lower nor a higher one speaks for the row as it stands.
  `${toPages} VALUES (1, 'x', 4) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body`,
  `${toPages} VALUES (1, 'x', 6) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body`,
  `${toPages} VALUES (1, 'x', 4) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body, fence = EXCLUDED.fence`,
  "UPDATE pages SET body = 'x'",
  "UPDATE pages SET body = 'x' FROM books WHERE book = books.id",
  "UPDATE pages SET body = 'x', fence = DEFAULT",
  "UPDATE ONLY pages SET id = 7",
  "WITH changed AS (UPDATE pages SET body = 'x' RETURNING id) SELECT count(*) FROM changed",
  "DELETE FROM pages",
  "DELETE FROM pages USING books",
  "WITH gone AS (DELETE FROM pages RETURNING id) INSERT INTO pages (id, fence) SELECT id, 9 FROM gone",
  "TRUNCATE pages",
  "UPDATE seen_pages SET body = 'x'",
  "INSERT INTO seen_pages VALUES (2, 'x')",
  "DELETE FROM seen_pages",
  "DELETE FROM books",
  "UPDATE books SET id = 2",
  "TRUNCATE books CASCADE",
  "DO $$ BEGIN UPDATE pages SET body = 'x'; END $$",
];
const unfencedMerges = [
  pagesMerge("(2, 'x', 9)", "WHEN NOT MATCHED THEN INSERT (id, body) VALUES (s.id, s.body)"),
  pagesMerge("(1, 'x', 9)", "WHEN MATCHED THEN UPDATE SET body = s.body"),
  pagesMerge("(1, 'x', 4)", "WHEN MATCHED THEN UPDATE SET body = s.body, fence = s.fence"),
  pagesMerge("(1, 'x', 9)", "WHEN MATCHED THEN DELETE"),
];

/** Each is accepted, in a transaction that is rolled back. */
const fencedPages = [
  `${toPages} VALUES (2, 'x', 1)`,
  `${toPages} VALUES (2, 'x', 1); UPDATE pages SET body = 'y' WHERE id = 2; DELETE FROM pages WHERE id = 2`,
  `${toPages} VALUES (1, 'x', 5) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body`,
  `${toPages} VALUES (1, 'x', 6) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body, fence = EXCLUDED.fence`,
  "UPDATE pages SET body = 'x', fence = 5",
  "UPDATE pages SET fence = 6; UPDATE seen_pages SET body = 'x'; DELETE FROM books",
];
const fencedMerges = [
  pagesMerge(
    "(1, 'x', 6), (2, 'x', 6)",
    "WHEN MATCHED THEN UPDATE SET body = s.body, fence = s.fence " +
      "WHEN NOT MATCHED THEN INSERT (id, body, fence) VALUES (s.id, s.body, s.fence)",
  ),
];

statementTests("Debian's PostgreSQL", debianPostgres, skipWithoutDebianPostgres());
// A newer one; of programs it has none to copy from.
statementTests("the embedded PostgreSQL", embeddedPostgres, skipWithoutDriver("@electric-sql/pglite"));

function statementTests(title: string, start: () => Promise<TestPostgres>, skip: string | false): void {
  describe(`each kind of statement at a guarded table: ${title}`, { skip, timeout: 120_000 }, () => {
    let postgres: TestPostgres;
    const place = {} as Place;

    before(async () => {
      postgres = await start();
      place.pool = postgres.pool({ max: 1 });
      await place.pool.query(schema);
      const facts =
        "SELECT current_setting('server_version_num')::int AS version, rolsuper FROM pg_roles WHERE rolname = current_user";
      const [row] = (await place.pool.query(facts)).rows;
      Object.assign(place, {
        version: row?.["version"],
        mayCopy: row?.["rolsuper"] === true && start === debianPostgres,
      });
    });
    after(() => postgres?.stop());

    rowFormTests(place);
    tableFormTests(place);
    partitionTests(place);
    inheritanceTest(place);
  });
}

/** What the connection then has of a transaction is rolled back. */
async function tried(pool: TestPool, text: string, isRefused: boolean): Promise<void> {
  await pool.query("BEGIN");
  try {
    if (isRefused) await assert.rejects(pool.query(text), refused, text);
    else await pool.query(text);
  } catch (error) {
    throw new Error(text, { cause: error });
  } finally {
    await pool.query("ROLLBACK");
  }
}

function rowFormTests(place: Place): void {
  const state = async (): Promise<unknown> => (await place.pool.query("SELECT * FROM pages ORDER BY id")).rows;

  test("fence in the row: what shows no token, or an old one, is refused in every statement", async (context) => {
    for (const text of unfencedPages) {
      await assert.rejects(place.pool.query(text), refused, text);
      await tried(place.pool, text, true);
    }
    for (const text of place.version >= 150_000 ? unfencedMerges : []) await tried(place.pool, text, true);
    if (place.mayCopy) {
      await tried(place.pool, copied("pages (id, body)", "2,x"), true);
      await tried(place.pool, copied("pages (id, body, fence)", "2,x,9", "3,x,0"), true);
    } else context.diagnostic("COPY was not tried: it takes a superuser, and programs");
    assert.deepEqual(await state(), [{ id: 1, body: "first", fence: "5", book: 1 }]);
  });

  test("fence in the row: what shows its token is accepted in every statement", async () => {
    for (const text of fencedPages) await tried(place.pool, text, false);
    for (const text of place.version >= 150_000 ? fencedMerges : []) await tried(place.pool, text, false);
    if (place.mayCopy) await tried(place.pool, copied("pages (id, body, fence)", "2,x,9"), false);
  });

  test("fence in the row: a MERGE with one UPDATE that names the fence passes for all its UPDATEs, as the page says", async (context) => {
    if (place.version < 150_000) return context.skip("MERGE came with PostgreSQL 15");
    const actions =
      "WHEN MATCHED AND s.fence > 8 THEN UPDATE SET fence = s.fence WHEN MATCHED THEN UPDATE SET body = s.body";
    await tried(place.pool, pagesMerge("(1, 'x', 4)", actions), false);
  });

  test("fence in the row, with plain_inserts: a row may be made without a token, and is guarded from then on", async () => {
    const { pool } = place;
    await pool.query(
      "CREATE TABLE drafts (id integer PRIMARY KEY, body text, fence bigint); " +
        "SELECT holdfast_guard_rows('drafts', 'fence', plain_inserts => true)",
    );
    await pool.query("INSERT INTO drafts VALUES (1, 'first', NULL), (2, 'first', 3)");
    await pool.query("INSERT INTO drafts VALUES (1, 'x') ON CONFLICT DO NOTHING");
    for (const text of [
      "INSERT INTO drafts VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET body = 'x'",
      "UPDATE drafts SET body = 'x'",
      "DELETE FROM drafts WHERE id = 1",
      "TRUNCATE drafts",
    ]) {
      await tried(pool, text, true);
    }
  });
}

function tableFormTests(place: Place): void {
  const bookings = [
    "INSERT INTO bookings VALUES (2, 'x')",
    "INSERT INTO bookings VALUES (1, 'x') ON CONFLICT DO NOTHING",
    "INSERT INTO bookings VALUES (1, 'x') ON CONFLICT (amount) DO UPDATE SET note = EXCLUDED.note",
    "UPDATE bookings SET note = 'x'",
    "DELETE FROM bookings",
    "TRUNCATE bookings",
  ];
  const accounts = [
    "INSERT INTO accounts VALUES (2, 0)",
    "INSERT INTO accounts VALUES (1, 0) ON CONFLICT DO NOTHING",
    "INSERT INTO accounts VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET balance = 0",
    "UPDATE accounts SET balance = 0",
    "DELETE FROM accounts",
  ];
  const merge = (table: string, key: string, value: string): string[] => {
    const into = `MERGE INTO ${table} USING (VALUES (1), (2)) AS s (id) ON ${table}.${key} = s.id`;
    return [
      `${into} WHEN NOT MATCHED THEN INSERT (${key}) VALUES (s.id)`,
      `${into} WHEN MATCHED THEN UPDATE SET ${value} = NULL`,
      `${into} WHEN MATCHED THEN DELETE`,
    ];
  };
  const take = (resource: string): string => `INSERT INTO holdfast_fences VALUES ('${resource}', 7);`;

  test("table of fences: every statement is refused until the transaction has taken the fence, and accepted then", async () => {
    const { pool, version, mayCopy } = place;
    const merges = version >= 150_000;
    const ofTable = [...bookings, ...(merges ? merge("bookings", "amount", "note") : [])];
    const ofRows = [...accounts, ...(merges ? merge("accounts", "id", "balance") : [])];
    if (mayCopy) {
      ofTable.push(copied("bookings", "2,x"));
      ofRows.push(copied("accounts", "2,0"));
    }
    for (const text of ofTable) {
      await tried(pool, text, true);
      await tried(pool, `${take("acct:1")} ${text}`, true);
      await tried(pool, `${take("bookings")} ${text}`, false);
    }
    for (const text of ofRows) {
      await tried(pool, text, true);
      await tried(pool, `${take("bookings")} ${text}`, true);
      await tried(pool, `${take("acct:1")} ${take("acct:2")} ${text}`, false);
    }
    await tried(pool, `${take("acct:1")} TRUNCATE accounts`, true);
  });
}

function partitionTests(place: Place): void {
  test("partitions: what goes to one of them by its own name is refused, too, and what moves a row has to have taken it", async (context) => {
    if (place.version < 130_000)
      return context.skip("row triggers before a write to a partitioned table came with PostgreSQL 13");
    const { pool } = place;
    await pool.query(`
      CREATE TABLE parted (id integer, body text, fence bigint, PRIMARY KEY (id)) PARTITION BY RANGE (id);
      CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
      SELECT holdfast_guard_rows('parted', 'fence');
      CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (200);
      INSERT INTO parted VALUES (1, 'first', 5);
      CREATE TABLE whole (id integer) PARTITION BY RANGE (id);
      CREATE TABLE whole_1 PARTITION OF whole FOR VALUES FROM (0) TO (100);
      SELECT holdfast_guard_table('whole', 'bookings');`);
    for (const text of [
      "INSERT INTO parted_1 VALUES (2, 'x')",
      "INSERT INTO parted_2 VALUES (102, 'x')",
      "UPDATE parted_1 SET body = 'x'",
      "DELETE FROM parted_1",
      "TRUNCATE parted_1",
      "UPDATE parted SET id = 101",
      // The row is deleted from one and inserted into the other, and what is deleted bears the fence of before.
      "UPDATE parted SET id = 101, fence = 6",
      "INSERT INTO whole VALUES (1)",
      "INSERT INTO whole_1 VALUES (1)",
      "DELETE FROM whole_1",
      "TRUNCATE whole_1",
    ]) {
      await tried(pool, text, true);
    }
    await tried(pool, "UPDATE parted SET fence = 6; UPDATE parted SET id = 101", false);
    await pool.query("SELECT holdfast_guard_rows('parted', 'fence'), holdfast_guard_table('whole', 'bookings')");
    await tried(pool, "TRUNCATE parted_2", true);
    await pool.query("SELECT holdfast_unguard('parted'), holdfast_unguard('whole')");
    await pool.query(
      "UPDATE parted_1 SET body = 'x'; TRUNCATE parted_1; INSERT INTO whole_1 VALUES (1); TRUNCATE whole",
    );
  });
}

function inheritanceTest(place: Place): void {
  test("tables that inherit are guarded with their parent", async () => {
    const { pool } = place;
    await pool.query(`
      CREATE TABLE parent (id integer, fence bigint);
      CREATE TABLE child (more text) INHERITS (parent);
      SELECT holdfast_guard_rows('parent', 'fence');
      INSERT INTO child VALUES (1, 5, 'first');`);
    for (const text of [
      "UPDATE parent SET id = 2",
      "DELETE FROM child",
      "INSERT INTO child VALUES (2)",
      "TRUNCATE child",
    ]) {
      await tried(pool, text, true);
    }
    await pool.query("SELECT holdfast_unguard('parent'); DELETE FROM child");
  });
}
