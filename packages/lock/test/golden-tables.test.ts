/** The rules of the lock machine, one table for each; UPDATE_GOLDEN=1 writes down what comes out, to be read in the diff. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import test from "node:test";
import { runTable } from "./table-runner.js";

const folder = new URL("../../test/tables/", import.meta.url);
const files = readdirSync(folder).filter((file) => file.endsWith(".txt"));

test("there are tables", () => {
  assert.ok(files.length >= 20, `${files.length} tables`);
});

for (const file of files) {
  test(`table ${file}`, () => {
    const url = new URL(file, folder);
    const text = readFileSync(url, "utf8");
    const actual = runTable(text);
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(url, actual);
    else assert.equal(actual, text);
  });
}
