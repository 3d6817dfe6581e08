import assert from "node:assert/strict";
import { test } from "node:test";

import { InvalidArgumentError } from "../../src/index.js";
import { quotedIdentifier, quotedTable } from "../../src/postgres/identifiers.js";

test("any name is data once it is quoted", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["documents", '"documents"'],
    ["userId", '"userId"'],
    ['a"b', '"a""b"'],
    ['x"; DROP TABLE documents; --', '"x""; DROP TABLE documents; --"'],
    ["a.b", '"a.b"'],
    ["$1", '"$1"'],
    ["\\", '"\\"'],
    ["größe", '"größe"'],
    ["a".repeat(63), `"${"a".repeat(63)}"`],
  ];
  for (const [name, quoted] of cases) assert.equal(quotedIdentifier(name, "name"), quoted);
  assert.equal(quotedTable("t", undefined), '"t"');
  assert.equal(quotedTable("t", 's"'), '"s"""."t"');
});

test("what can't be a name is refused by name", () => {
  const odd: readonly unknown[] = ["", undefined, null, 3, "a\0b", "\udc00", "a".repeat(64), "ö".repeat(32)];
  for (const name of odd) {
    assert.throws(
      () => quotedIdentifier(name, "options.key"),
      (error) => error instanceof InvalidArgumentError && error.argument === "options.key",
    );
  }
  assert.throws(() => quotedTable("t", ""), { argument: "options.schema" });
  assert.throws(() => quotedTable("", undefined), { argument: "options.table" });
});
