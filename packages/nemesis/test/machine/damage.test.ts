import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { damageDirectory } from "../../src/machine/damage.js";

describe("damage to a directory", () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-damage-"));
    mkdirSync(join(directory, "database"));
    for (const [name, size] of [
      ["000003.log", 0],
      ["000007.log", 1_000],
      ["000005.log", 10],
      ["000004.ldb", 300],
      ["CURRENT", 16],
      ["MANIFEST-000002", 50],
      ["LOG", 5_000],
    ] as const) {
      writeFileSync(join(directory, "database", name), Buffer.alloc(size, 0x55));
    }
    writeFileSync(join(directory, "identity"), "n1");
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const read = (name: string): Buffer => readFileSync(join(directory, "database", name));

  it("flips one bit in the middle of the biggest log", () => {
    const { file } = damageDirectory(directory, "logBit");
    assert.equal(file, "database/000007.log");
    const expected = Buffer.alloc(1_000, 0x55);
    expected[500] = 0x54;
    assert.deepEqual(read("000007.log"), expected);
    assert.equal(read("000005.log").length, 10);
  });

  it("flips one bit of a table", () => {
    assert.equal(damageDirectory(directory, "tableBit").file, "database/000004.ldb");
    assert.equal(read("000004.ldb")[150], 0x54);
  });

  it("removes the name of the manifest, or cuts its end off", () => {
    assert.equal(damageDirectory(directory, "currentMissing").file, "database/CURRENT");
    assert.ok(!readdirSync(join(directory, "database")).includes("CURRENT"));
    assert.equal(damageDirectory(directory, "manifestTorn").file, "database/MANIFEST-000002");
    assert.equal(statSync(join(directory, "database/MANIFEST-000002")).size, 40);
  });

  it("empties a directory and leaves it there", () => {
    assert.equal(damageDirectory(directory, "directoryEmpty").file, ".");
    assert.deepEqual(readdirSync(directory), []);
  });

  it("says that there was nothing to damage", () => {
    rmSync(join(directory, "database/000004.ldb"));
    assert.deepEqual(damageDirectory(directory, "tableBit"), {
      file: null,
      what: "there is no such file with something in it",
    });
  });
});
