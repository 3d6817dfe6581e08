/** `holdfast doctor --guard` on a real PostgreSQL: a sound one, one whose fences forget, and what it leaves behind. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { debianPostgres, skipWithoutDebianPostgres } from "../harness/postgres.js";
import type { TestPool, TestPostgres } from "../harness/postgres.js";
import { migration } from "../fence/stores/postgres.js";
import { examineByCli } from "../fence/doctor-run.js";
import { CliProcess, runCli } from "./cli-process.js";

describe("doctor --guard on PostgreSQL", { skip: skipWithoutDebianPostgres(), timeout: 120_000 }, () => {
  let postgres: TestPostgres;
  let pool: TestPool;

  before(async () => {
    postgres = await debianPostgres();
    pool = postgres.pool();
  });
  after(() => postgres?.stop());

  const tables = async (): Promise<unknown> =>
    (await pool.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).rows.map(
      (row) => row["tablename"],
    );

  test("a sound one is in order, with a table of fences made for it or with the real one", async () => {
    const made = await examineByCli(postgres.url);
    assert.deepEqual([made.code, made.problems], [3, []], made.text);
    assert.match(made.text, /fsync and synchronous_commit are off/);
    assert.match(made.text, /none refuses writes without a fence/);
    assert.deepEqual(await tables(), []);

    await pool.query(`${migration("001-fence-table")} ${migration("002-refuse-unfenced")}`);
    await pool.query(
      "CREATE TABLE documents (id integer, fence bigint); SELECT holdfast_guard_rows('documents', 'fence')",
    );
    const real = await examineByCli(postgres.url);
    assert.deepEqual([real.code, real.problems], [3, []], real.text);
    assert.match(real.text, /the table of fences \(holdfast_fences\): token 9 was refused after 10/);
    assert.match(real.text, /refuse writes without a fence: documents/);
    assert.deepEqual((await pool.query("SELECT * FROM holdfast_fences")).rows, []);
  });

  test("a table of fences that forgets is a problem", async () => {
    await pool.query(`
      DROP TRIGGER IF EXISTS holdfast_fence_taken ON holdfast_fences;
      CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.token := 1; RETURN NEW; END';
      CREATE TRIGGER forget BEFORE INSERT OR UPDATE ON holdfast_fences FOR EACH ROW EXECUTE FUNCTION forget()`);
    const forgetful = await examineByCli(postgres.url);
    assert.equal(forgetful.code, 4, forgetful.text);
    assert.deepEqual(forgetful.problems, ["old token", "at once", "great tokens"]);
    assert.match(forgetful.text, /token 9 was accepted after 10/);
    await pool.query("DROP TABLE holdfast_fences");
  });

  test("what can't be examined ends with 1 or 2, and says why without the password", async () => {
    const wrong = new URL(postgres.url);
    wrong.password = "wrong-secret";
    const refused = await runCli(["doctor", "--guard", wrong.href], {});
    assert.deepEqual([refused.code, refused.out], [1, ""]);
    assert.match(refused.err, /--guard needs the package pg, and finds none from/);
    const odd = await runCli(["doctor", "--guard", "oracle://a:secret@b/c"], {});
    assert.equal(odd.code, 2);
    assert.match(odd.err, /postgres:\/\/, mysql:\/\/, redis:\/\/, sqlite:FILE or s3:\/\//);
    const mixed = await runCli(["doctor", "--guard", postgres.url, "--data", "x"], {});
    assert.equal(mixed.code, 2);
    const there = new CliProcess(
      ["doctor", "--guard", wrong.href],
      {},
      fileURLToPath(new URL("../../drivers", import.meta.url)),
    );
    const failed = await there.ended;
    assert.equal(failed.code, 1);
    assert.match(failed.err, /^holdfast: pg says: password authentication failed/);
    for (const { err } of [refused, odd, mixed, failed]) assert.doesNotMatch(err, /secret/);
    assert.deepEqual(await tables(), ["documents"]);
  });
});
