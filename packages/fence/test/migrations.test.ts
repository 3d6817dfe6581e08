/** The SQL files that the package ships say what its functions say: whoever uses the one or the other gets the same table. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { mysqlFenceTableSql } from "../src/mysql.js";
import { fenceTableSql } from "../src/postgres.js";
import { sqliteFenceTableSql } from "../src/sqlite.js";

for (const [store, text] of [
  ["postgres", fenceTableSql()],
  ["mysql", mysqlFenceTableSql()],
  ["sqlite", sqliteFenceTableSql()],
] as const) {
  test(`sql/${store}/001-fence-table.sql`, () => {
    // As an importer finds it, and as it lies in the tarball.
    const url = import.meta.resolve(`@holdfast/fence/sql/${store}/001-fence-table.sql`);
    assert.equal(readFileSync(new URL(url), "utf8").replaceAll(/^--.*\n/gm, ""), text);
  });
}

test("the files are packed", () => {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    readonly files: readonly string[];
  };
  assert.ok(manifest.files.includes("sql"));
});
