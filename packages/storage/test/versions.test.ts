/** Directories of other nodes and of later releases are refused, and left as they are. */
import assert from "node:assert/strict";
import { crc32c } from "@holdfast/wire";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { StorageError, readMachineBootId } from "../src/index.js";
import { entriesKey, metaKey, ownerKey } from "../src/rows.js";
import { contentsOf, copyOf, open } from "./fixture.js";
import { editRows, makePrototypes } from "./prototypes.js";
import type { Prototypes } from "./prototypes.js";

let prototypes: Prototypes;

before(async () => {
  prototypes = await makePrototypes();
});

async function expectRefused(
  directory: string,
  code: string,
  exitCode: number,
  found: RegExp,
  nodeId = "n1",
): Promise<void> {
  const contents = await contentsOf(directory);
  for (let start = 1; start <= 2; start++) {
    await assert.rejects(open(directory, { nodeId }), (error) => {
      assert(error instanceof StorageError);
      assert.equal(error.code, code, error.message);
      assert.equal(error.exitCode, exitCode);
      assert.match(error.message, found);
      return true;
    });
    assert.deepEqual(await contentsOf(directory), contents, "nothing is touched");
  }
}

test("another node's directory", async () => {
  await expectRefused(prototypes.inLog, "other_node", 77, /belongs to node n1, and this is node n2/, "n2");
});

test("another node's directory in quarantine keeps its reason", async () => {
  const directory = await copyOf(prototypes.inLog);
  const opened = await open(directory);
  await opened.quarantine("something");
  await opened.close();
  await expectRefused(directory, "other_node", 77, /belongs to node n1/, "n2");
  await expectRefused(directory, "quarantined", 74, /: something; see/);
});

test("an identity of a later format", async () => {
  const directory = await copyOf(prototypes.inLog);
  const path = join(directory, "identity");
  const [line] = (await readFile(path, "utf8")).split("\n") as [string];
  const later = JSON.stringify({ ...(JSON.parse(line) as object), formatVersion: 2, somethingNew: [1] });
  await writeFile(path, `${later}\ncrc32c=${crc32c(Buffer.from(later)).toString(16).padStart(8, "0")}\n`);
  await expectRefused(directory, "newer_format", 78, /identity has format 2, and this release knows 1 at most/);
});

for (const [name, key] of [
  ["owner", ownerKey],
  ["meta", metaKey],
  ["entries", entriesKey(0, 41)],
] as const) {
  test(`a row of a later format: ${name}`, async () => {
    const directory = await copyOf(prototypes.inTables);
    await editRows(directory, async (get) => {
      const value = Buffer.from(await get(key));
      value[0] = 2;
      value.writeUInt32BE(crc32c(value.subarray(0, -4), crc32c(key)), value.length - 4);
      return [{ type: "put", key, value }];
    });
    await expectRefused(directory, "newer_format", 78, /db has a row of format 2, and this release knows 1 at most/);
  });
}

test("the machine's boot id is the same until it is started again", () => {
  const id = readMachineBootId();
  assert.match(id, /^[\w-]{6,}$/);
  assert.equal(readMachineBootId(), id);
});
