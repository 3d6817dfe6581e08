import { Level } from "level";
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { readTable } from "../../src/leveldb/table.js";
import { newPath } from "../fixture.js";

const footerBytes = 48;
let table: Buffer;

before(async () => {
  const path = await newPath();
  const options = { keyEncoding: "buffer", valueEncoding: "buffer", compression: false } as const;
  const level = new Level<Buffer, Buffer>(path, options);
  for (let row = 0; row < 300; row++)
    await level.put(Buffer.from(`row-${String(row).padStart(4, "0")}`), Buffer.alloc(row));
  await level.del(Buffer.from("row-0007"));
  await level.close();
  await new Level<Buffer, Buffer>(path, options).close();
  const again = new Level<Buffer, Buffer>(path, options);
  await again.open();
  await again.close();
  const [name] = (await readdir(path)).filter((each) => each.endsWith(".ldb"));
  table = await readFile(join(path, name as string));
});

function read(bytes: Buffer): [string, number, number | null][] {
  const rows: [string, number, number | null][] = [];
  readTable(bytes, (key, sequence, value) =>
    rows.push([key.toString(), sequence, value === null ? null : value.length]),
  );
  return rows;
}

test("every flipped bit of the footer is found, also one that lengthens a number without changing it", () => {
  for (let at = table.length - footerBytes; at < table.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const changed = Buffer.from(table);
      changed[at] = (changed[at] as number) ^ (1 << bit);
      assert.throws(() => read(changed), `bit ${bit} at ${at - table.length}`);
    }
  }
});

test("each version of each row, with its sequence number", () => {
  const rows = read(table);
  assert.equal(rows.length, 301);
  assert.deepEqual(rows[0], ["row-0000", 1, 0]);
  assert.deepEqual(
    rows.filter(([key]) => key === "row-0007"),
    [
      ["row-0007", 301, null],
      ["row-0007", 8, 7],
    ],
  );
  assert.deepEqual(rows.at(-1), ["row-0299", 300, 299]);
});

test("bytes between the blocks and the footer", () => {
  const gap = Buffer.concat([table.subarray(0, -footerBytes), Buffer.alloc(9), table.subarray(-footerBytes)]);
  assert.throws(() => read(gap), /the table's blocks end before its footer/);
});

test("a footer whose handles name sound blocks in other places", () => {
  const footer = table.subarray(-footerBytes);
  const handleBytes = (at: number): number => {
    let end = at;
    for (let numbers = 0; numbers < 2; end++) if ((footer[end] as number) < 128) numbers++;
    return end - at;
  };
  const first = handleBytes(0);
  const second = handleBytes(first);
  const changed = Buffer.alloc(footerBytes);
  footer.copy(changed, 0, first, first + second);
  footer.copy(changed, second, first, first + second);
  footer.copy(changed, 40, 40);
  assert.throws(
    () => read(Buffer.concat([table.subarray(0, -footerBytes), changed])),
    /the filter block at 0 should be at \d+/,
  );
});

test("something else", () => {
  assert.throws(() => read(Buffer.alloc(10)), /too short/);
  assert.throws(() => read(Buffer.alloc(100)), /footer is not one/);
});
