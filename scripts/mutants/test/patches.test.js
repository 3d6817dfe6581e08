import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, it } from "node:test";
import { applyMutant, parseMutant, problemOf, readMutants, revertMutant } from "../patches.js";

const diff = `--- a/packages/raft/src/a.ts
+++ b/packages/raft/src/a.ts
@@ -2,3 +2,3 @@
 one
-two
+too
 three
`;
const head = "# name: some-bug\n# breaks: P4 early expiry\n# seeds: 400\n";

/**
 * @param {string} source
 * @param {(top: string) => void} body
 */
function inTree(source, body) {
  const top = mkdtempSync(path.join(os.tmpdir(), "holdfast test-"));
  try {
    mkdirSync(path.join(top, "packages/raft/src"), { recursive: true });
    writeFileSync(path.join(top, "packages/raft/src/a.ts"), source);
    writeFileSync(path.join(top, "some-bug.patch"), head + diff);
    body(top);
  } finally {
    rmSync(top, { recursive: true });
  }
}

describe("the patches of mutants", () => {
  it("say what they are", () => {
    const mutant = parseMutant("/x/some-bug.patch", head + diff);
    assert.deepEqual(mutant, {
      name: "some-bug",
      breaks: "P4 early expiry",
      seeds: 400,
      test: null,
      file: "/x/some-bug.patch",
      hunks: [{ file: "packages/raft/src/a.ts", before: "one\ntwo\nthree" }],
    });
  });

  it("are refused when they don't", () => {
    for (const key of ["name", "breaks", "seeds"]) {
      const without = head.replace(new RegExp(`^# ${key}:.*\n`, "m"), "");
      assert.throws(() => parseMutant("/x/some-bug.patch", without + diff), new RegExp(`no line "# ${key}`));
    }
    assert.throws(() => parseMutant("/x/other.patch", head + diff), /its name is some-bug/);
    assert.throws(() => parseMutant("/x/some-bug.patch", head.replace("400", "many") + diff), /whole number/);
    assert.throws(() => parseMutant("/x/some-bug.patch", head), /changes nothing/);
  });

  it("apply in a folder that is no repository, and can be taken back", () => {
    const source = "zero\none\ntwo\nthree\nfour\nfive\n";
    inTree(source, (top) => {
      const [mutant] = readMutants(top);
      const text = () => readFileSync(path.join(top, "packages/raft/src/a.ts"), "utf8");
      assert.equal(problemOf(top, mutant), null);
      assert.equal(text(), source, "a check changes nothing");
      applyMutant(top, mutant);
      assert.equal(text(), "zero\none\ntoo\nthree\nfour\nfive\n");
      assert.throws(() => applyMutant(top, mutant), /some-bug: .*does not apply/s);
      revertMutant(top, mutant);
      assert.equal(text(), source);
    });
  });

  it("that fit nowhere, or in two places, have a problem", () => {
    inTree("zero\none\n2\nthree\nfour\n", (top) => {
      assert.match(problemOf(top, readMutants(top)[0]) ?? "", /patch does not apply/);
    });
    inTree("zero\none\ntwo\nthree\nfour\none\ntwo\nthree\nfour\n", (top) => {
      assert.match(problemOf(top, readMutants(top)[0]) ?? "", /stand there 2 times/);
    });
  });
});
