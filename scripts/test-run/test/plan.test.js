import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { longest, planTests } from "../plan.js";

const scripts = fileURLToPath(new URL("../../", import.meta.url));

/**
 * @param {Record<string, string>} files
 * @param {(top: string) => void | Promise<void>} body
 */
async function inFolder(files, body) {
  const top = mkdtempSync(path.join(os.tmpdir(), "holdfast test-"));
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(top, file)), { recursive: true });
      writeFileSync(path.join(top, file), text);
    }
    await body(top);
  } finally {
    rmSync(top, { recursive: true });
  }
}

const tree = {
  "packages/raft/test/deep/b.test.ts": "",
  "packages/raft/test/a.test.ts": "",
  "packages/raft/test/helper.ts": "",
  "packages/raft/dist/test/deleted.test.js": "",
  "scripts/x/test/s.test.js": "",
  "test/cluster/c.test.ts": "",
  "test/cluster/d.alone.test.ts": "",
  "test/dist/deleted.test.js": "",
  "test/drivers/node_modules/x/x.test.js": "",
};

test("units first, whole-cluster files after them, those that measure time alone", () =>
  inFolder(tree, (top) => {
    assert.deepEqual(planTests(top, { part: "all", patterns: [] }), [
      {
        name: "units",
        files: [
          "packages/raft/dist/test/a.test.js",
          "packages/raft/dist/test/deep/b.test.js",
          "scripts/x/test/s.test.js",
        ],
        concurrency: 3,
      },
      { name: "whole clusters", files: ["test/dist/cluster/c.test.js"], concurrency: 4 },
      { name: "alone", files: ["test/dist/cluster/d.alone.test.js"], concurrency: 1 },
    ]);
  }));

test("the longest of a phase come first", () => {
  const files = [...longest, "packages/a/test/a.test.ts", "test/a.test.ts"];
  return inFolder(Object.fromEntries(files.map((file) => [file, ""])), (top) => {
    const isUnit = (/** @type {string} */ file) => file.startsWith("packages/");
    const compiled = (/** @type {string} */ file) => file.replace("test/", "dist/test/").replace(/ts$/, "js");
    const ofTest = (/** @type {string} */ file) => file.replace("test/", "test/dist/").replace(/ts$/, "js");
    assert.deepEqual(
      planTests(top, { part: "all", patterns: [] }).map((phase) => phase.files),
      [
        [...longest.filter(isUnit).map(compiled), "packages/a/dist/test/a.test.js"],
        [...longest.filter((file) => !isUnit(file)).map(ofTest), "test/dist/a.test.js"],
      ],
    );
  });
});

test("each of the longest is there: one that was renamed would begin anywhere", () => {
  const top = path.dirname(scripts.replace(/\/$/, ""));
  assert.deepEqual(
    longest.filter((file) => !existsSync(path.join(top, file))),
    [],
  );
});

test("the product's tests, the tools' and the stores' are all", () => {
  const top = path.dirname(scripts.replace(/\/$/, ""));
  const filesOf = (/** @type {import("../plan.js").Part} */ part) =>
    planTests(top, { part, patterns: [] }).flatMap(({ files }) => files);
  const [usual, tools, stores] = [filesOf("usual"), filesOf("tools"), filesOf("stores")];
  assert.deepEqual([...usual, ...tools, ...stores].sort(), filesOf("all").sort());
  assert.ok(
    stores.includes("test/dist/fence/redis-store.test.js") && !stores.some((file) => file.includes("postgres")),
  );
  assert.deepEqual(
    tools.filter((file) => !/^(scripts|packages\/(simulator|nemesis)|test\/dist\/packaging)\//.test(file)),
    [],
  );
  assert.ok(tools.includes("test/dist/packaging/packages.test.js"));
  assert.equal(usual.filter((file) => /simulator.*\/seeds-[12]\.test\.js$/.test(file)).length, 2);
});

test("--fast leaves out test/ and the seeds; patterns select by path", () =>
  inFolder({ ...tree, [longest[0] ?? ""]: "" }, (top) => {
    const fast = planTests(top, { part: "fast", patterns: [] });
    assert.deepEqual(
      fast.flatMap((phase) => phase.files).filter((file) => file.includes("seeds-")),
      [],
    );
    assert.deepEqual(
      fast.flatMap((phase) => phase.files).filter((file) => file.startsWith("test/")),
      [],
    );
    const selected = planTests(top, { part: "all", patterns: ["cluster/c", "raft/.*/b"] });
    assert.deepEqual(
      selected.flatMap((phase) => phase.files),
      ["packages/raft/dist/test/deep/b.test.js", "test/dist/cluster/c.test.js"],
    );
    assert.deepEqual(planTests(top, { part: "all", patterns: ["nothing like it"] }), []);
  }));

test("the whole runner: one summary for all phases, the exit code of a failure, a name filter", () => {
  const good = 'import { test } from "node:test"; test("good", () => {});';
  const bad = 'import { test } from "node:test"; test("bad", () => { throw new Error("bad"); });';
  const files = {
    "package.json": '{ "type": "module" }',
    "packages/raft/test/good.test.ts": "",
    "packages/raft/dist/test/good.test.js": good,
    "test/bad.alone.test.ts": "",
    "test/dist/bad.alone.test.js": bad,
  };
  return inFolder(files, (top) => {
    for (const name of ["test.js", "test-run/plan.js", "test-run/phases.js"]) {
      cpSync(path.join(scripts, name), path.join(top, "scripts", name));
    }
    const all = runTests(top, []);
    assert.equal(all.status, 1);
    assert.match(all.stdout, /tests 2\n.*suites 0\n.*pass 1\n.*fail 1\n/);
    assert.equal(all.stdout.match(/duration_ms \d/g)?.length, 1);
    const fast = runTests(top, ["--fast"]);
    assert.deepEqual([fast.status, /pass 1\n.*fail 0\n/.test(fast.stdout)], [0, true]);
    assert.equal(runTests(top, ["--name", "^good$"]).status, 0);
    assert.match(runTests(top, ["nothing"]).stderr, /no test file matches nothing/);
    rmSync(path.join(top, "packages/raft/dist/test/good.test.js"));
    assert.match(runTests(top, []).stderr, /not compiled: packages\/raft\/dist\/test\/good\.test\.js/);
  });
});

/**
 * @param {string} top
 * @param {string[]} options
 */
function runTests(top, options) {
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT; // else the runner believes that it runs inside a test
  return spawnSync(process.execPath, [path.join(top, "scripts/test.js"), ...options], { encoding: "utf8", env });
}
