import assert from "node:assert/strict";
import test from "node:test";
import { Hasher, hashText } from "../src/hash.js";
import type { SnapshotValue } from "../src/snapshot-records.js";

test("names spread over 256 shards, also those that differ in their last digits only", () => {
  for (const prefix of ["", "lock:", "/var/lib/some/long/path/"]) {
    const shards = Array.from({ length: 256 }, () => 0);
    for (let at = 0; at < 100_000; at += 1) {
      const shard = hashText(`${prefix}${at}`) % 256;
      shards[shard] = (shards[shard] ?? 0) + 1;
    }
    assert.ok(Math.max(...shards) < 1.6 * (100_000 / 256), `${prefix}: ${Math.max(...shards)}`);
  }
});

test("values that look alike hash differently", () => {
  const values: SnapshotValue[] = [
    0,
    1,
    -1,
    2 ** 32,
    2 ** 32 + 1,
    2 ** 33,
    Number.MAX_SAFE_INTEGER,
    "",
    "0",
    "1",
    "ab",
    "ba",
    null,
    true,
    false,
    [],
    [[]],
    [[], []],
    [0],
    ["0"],
    [1, 2],
    [[1], 2],
    [1, [2]],
    ["a", "b"],
    ["ab"],
    ["ab", ""],
    ["", "ab"],
  ];
  const hashes = values.map((value) => {
    const hasher = new Hasher();
    hasher.add(value);
    return hasher.digest();
  });
  assert.equal(new Set(hashes).size, values.length);
  for (const hash of hashes) assert.match(hash, /^[0-9a-f]{16}$/);
});
