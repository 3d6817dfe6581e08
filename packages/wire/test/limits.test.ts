import assert from "node:assert/strict";
import { test } from "node:test";
import { membershipBounds } from "@holdfast/raft";
import { errorCodes, limits } from "../src/index.js";

test("every limit is a whole number above 0 that fits in a timer or a length", () => {
  for (const [limit, value] of Object.entries(limits)) {
    assert.ok(Number.isInteger(value) && value > 0 && value < 2 ** 31, limit);
    assert.match(limit, /(Version|Max|Min|Slow|Bytes|Digits)/, "its name says what it bounds");
  }
});

test("the promises of the design hold", () => {
  assert.equal(limits.nameBytesMax, 512);
  assert.equal(limits.namesMax, 64);
  assert.equal(limits.outcomesPerSessionMax, 1_024);
  assert.equal(limits.seenMax, 64);
  assert.equal(limits.lockDelayMsMax, 60_000);
  assert.equal(limits.ttlMsMax, 3_600_000);
  assert.equal(limits.idsPerCommandMax, 1_000);
  assert.equal(limits.clientFrameBytesMax, 2 ** 20);
  assert.equal(limits.frameDepthMax, 16);
  assert.equal(limits.frameItemsMax, 65_536);
});

test("every error code says whether a retry can help", () => {
  for (const { retryable } of Object.values(errorCodes)) assert.equal(typeof retryable, "boolean");
});

test("whatever configuration the core makes can be written down", () => {
  const { votersMax, membersMax, removedMax } = membershipBounds;
  assert.ok(votersMax <= limits.membersMax && membersMax <= limits.membersMax);
  assert.ok(removedMax <= limits.removedMax);
});
