/** `holdfast doctor --guard sqlite:...` on database files, by the driver that is there. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";
import { examineByCli } from "./doctor-run.js";
import { sqliteDrivers, sqliteFile } from "./stores/sqlite.js";

const driver = sqliteDrivers.find(({ skip }) => skip === false);
const skip = driver === undefined ? (sqliteDrivers[0]?.skip ?? true) : false;

/** Where no better-sqlite3 lies that was built for another Node. */
const project = driver?.name === "better-sqlite3" ? "stores" : "drivers";

function inDatabase(body: (file: string, sql: (text: string) => unknown[]) => Promise<void>): () => Promise<void> {
  return async () => {
    if (driver === undefined) throw new Error("the test should have been skipped");
    const { path: file, remove } = sqliteFile(driver);
    try {
      await body(file, (text) => {
        const database = driver.open(file);
        try {
          return /^(CREATE|DROP)/.test(text) ? [database.exec(text)] : database.prepare(text).all();
        } finally {
          database.close();
        }
      });
    } finally {
      remove();
    }
  };
}

test(
  "doctor --guard on SQLite: sound, by each form of URL, and nothing is left behind",
  { skip },
  inDatabase(async (file, sql) => {
    sql("PRAGMA journal_mode = DELETE");
    const schema = sql("SELECT sql FROM sqlite_schema ORDER BY name");
    for (const url of [`sqlite:${file}`, `sqlite://${file}`, pathToFileURL(file).href]) {
      const found = await examineByCli(url, project);
      assert.deepEqual([found.code, found.problems], [0, []], found.text);
      assert.match(found.text, /the table of fences \(holdfast_fences\): token 9 was refused after 10/);
    }
    assert.deepEqual(sql("SELECT sql FROM sqlite_schema ORDER BY name"), schema);
    assert.deepEqual(sql("SELECT * FROM holdfast_fences"), []);
  }),
);

test(
  "doctor --guard on SQLite: a table of fences that forgets is a problem",
  { skip },
  inDatabase(async (file, sql) => {
    sql("CREATE TRIGGER forget AFTER UPDATE ON holdfast_fences BEGIN UPDATE holdfast_fences SET token = 1; END");
    const found = await examineByCli(`sqlite:${file}`, project);
    assert.equal(found.code, 4, found.text);
    assert.deepEqual(found.problems, ["old token", "at once", "great tokens"]);
    assert.deepEqual(sql("SELECT * FROM holdfast_fences"), []);
  }),
);

test(
  "doctor --guard on SQLite: without a table of fences one is made for it; WAL by better-sqlite3 may forget",
  { skip },
  inDatabase(async (file, sql) => {
    sql("DROP TABLE holdfast_fences");
    sql("PRAGMA journal_mode = WAL");
    const found = await examineByCli(`sqlite:${file}`, project);
    const isForgetful = driver?.name === "better-sqlite3";
    assert.deepEqual([found.code, found.problems], [isForgetful ? 3 : 0, []], found.text);
    if (isForgetful) assert.match(found.text, /begin with synchronous = NORMAL/);
    assert.deepEqual(
      sql("SELECT name FROM sqlite_schema WHERE type = 'table'").map((row) => ({ ...(row as object) })),
      [{ name: "notes" }],
    );
  }),
);

test(
  "doctor --guard on SQLite makes no database, and leaves what is none as it is",
  { skip },
  inDatabase(async (file) => {
    const folder = path.dirname(file);
    const [missing, empty, other] = ["missing.db", "empty.db", "other.db"].map((name) => path.join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(empty, "");
    writeFileSync(other, "no database, but long enough to be taken for one".repeat(40));
    for (const [url, code, words] of [
      [`sqlite:${missing}`, 1, /missing\.db isn't there: --guard checks a database, and makes none/],
      [`sqlite:${empty}`, 1, /empty\.db is empty/],
      [`sqlite:${folder}`, 1, /is no file/],
      [`sqlite:${other}`, 1, /says: .*not a database/],
      ["sqlite:", 2, /sqlite:app\.db/],
      ["sqlite://host/app.db", 2, /sqlite:app\.db/],
      ["file:app.db", 2, /file:\/\/\/srv\/app\.db/],
    ] as const) {
      const { code: ended, text } = await examineByCli(url, project);
      assert.equal(ended, code, `${url}: ${text}`);
      assert.match(text, words);
    }
    assert.equal(existsSync(missing), false);
    assert.equal(readFileSync(empty, "utf8"), "");
    assert.match(readFileSync(other, "utf8"), /^no database/);
  }),
);
