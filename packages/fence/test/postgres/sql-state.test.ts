import assert from "node:assert/strict";
import { test } from "node:test";

import { hadNoEffect, isSerializationFailure, sqlStateOf } from "../../src/postgres/sql-state.js";
import { databaseError } from "./fake-pool.js";

test("only what the database answered has an SQLSTATE", () => {
  for (const code of ["40001", "40P01", "23505", "P0001", "XX000", "HV000"])
    assert.equal(sqlStateOf(databaseError(code)), code);
  for (const code of ["EPIPE", "ECONNRESET", "ENOTFOUND", "stale_token", ""])
    assert.equal(sqlStateOf(databaseError(code)), null);
  for (const other of [null, undefined, "40001", new Error("40001"), { code: 40001 }])
    assert.equal(sqlStateOf(other), null);
});

test("a statement had no effect only when the database or the driver says so for certain", () => {
  const certain = ["40001", "40P01", "23505", "22P02", "42P01", "25P02", "25P03", "57014", "55P03", "P0001", "0A000"];
  for (const code of certain) assert.equal(hadNoEffect(databaseError(code)), true, code);
  const uncertain = ["08006", "57P01", "57P02", "58030", "53100", "XX000", "40003", "EPIPE", "ECONNRESET"];
  for (const code of uncertain) assert.equal(hadNoEffect(databaseError(code)), false, code);
  assert.equal(hadNoEffect(new Error("Connection terminated unexpectedly")), false);
  assert.equal(hadNoEffect(new Error("Query read timeout")), false);
  assert.equal(hadNoEffect(new TypeError("Converting circular structure to JSON")), true);
});

test("serialization failures and deadlocks call for another attempt, nothing else", () => {
  for (const code of ["40001", "40P01"]) assert.equal(isSerializationFailure(databaseError(code)), true);
  for (const code of ["40002", "40003", "23505", "55P03"])
    assert.equal(isSerializationFailure(databaseError(code)), false);
});
