/** `holdfast doctor --guard mysql://...` on a real MariaDB. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { examineByCli } from "./doctor-run.js";
import { mysqlPool, skipWithoutMariadb, startMariadb } from "./mariadb-server.js";

test("doctor --guard on MariaDB: sound, and a log that isn't written at each commit", {
  skip: skipWithoutMariadb(),
}, async () => {
  const mariadb = await startMariadb();
  const pool = mysqlPool(mariadb.url);
  try {
    for (const flush of [1, 2]) {
      await pool.query(`SET GLOBAL innodb_flush_log_at_trx_commit = ${flush}`);
      const found = await examineByCli(mariadb.url.replace(/^mysql:/, flush === 1 ? "mysql:" : "mariadb:"));
      assert.deepEqual([found.code, found.problems], [flush === 1 ? 0 : 3, []], found.text);
    }
    const [tables] = await pool.query("SHOW TABLES");
    assert.deepEqual(tables, [], "nothing is left behind");
  } finally {
    await pool.end();
    await mariadb.stop();
  }
});
