/** Each check finds its bad example, and says nothing about the good one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkDeadCode } from "../dead-code.js";
import { checkDependencies } from "../dependencies.js";
import { checkDocuments } from "../documents.js";
import { alarmLongFiles, checkFiles } from "../files.js";
import { checkLessonsDocument } from "../lessons-document.js";
import { checkTestFunctions } from "../test-functions.js";
import { checkTestingDocument } from "../testing-document.js";
import { checkPurity } from "../purity.js";
import { Tree } from "../tree.js";

/** @param {Record<string, string>} texts */
const treeOf = (texts) => new Tree(new Map(Object.entries(texts)));

/** @param {object} [more] */
const manifest = (more = {}) => JSON.stringify({ exports: { ".": { default: "./dist/src/index.js" } }, ...more });

/** @param {import("../tree.js").Problem[]} problems */
const said = (problems) => problems.map(({ file, line, text }) => `${file}:${line}: ${text}`);

test("purity: banned words in code of pure packages", () => {
  const bad = "const a = Date.now();\nMath.random();\nexport async function f(): Promise<void> {}\nx.localeCompare(y);";
  const good = "// Date\nconst s = 'await'; Math.floor(1); random();";
  const tree = treeOf({
    "packages/raft/src/a.ts": bad,
    "packages/raft/src/b.ts": good,
    "packages/server/src/c.ts": bad,
  });
  assert.deepEqual(said(checkPurity(tree)), [
    "packages/raft/src/a.ts:1: Date is banned in a pure package",
    "packages/raft/src/a.ts:2: Math.random is banned in a pure package",
    "packages/raft/src/a.ts:3: async is banned in a pure package",
    "packages/raft/src/a.ts:3: Promise is banned in a pure package",
    "packages/raft/src/a.ts:4: localeCompare is banned in a pure package",
  ]);
});

test("dependencies: directions, types only, deep imports, undeclared, unused, unpinned", () => {
  const tree = treeOf({
    "packages/client/package.json": manifest({
      dependencies: {
        "@holdfast/wire": "0.1.0",
        "@holdfast/lock": "0.1.0",
        "@holdfast/raft": "0.1.0",
        level: "^10.0.0",
      },
    }),
    "packages/client/src/index.ts": [
      'import { a } from "@holdfast/wire";',
      'import type { B } from "@holdfast/lock";',
      'import { b } from "@holdfast/lock";',
      'import { c } from "@holdfast/raft";',
      'import { d } from "@holdfast/wire/dist/src/d.js";',
      'import WebSocket from "ws";',
      'export * from "../../server/src/x.js";',
      'const from = "somewhere";',
    ].join("\n"),
    "packages/client/test/a.test.ts":
      'import { x } from "../src/index.js";\nimport { y } from "../../server/src/y.js";',
  });
  assert.deepEqual(said(checkDependencies(tree)), [
    "packages/client/src/index.ts:3: client may import only types of lock (import type)",
    "packages/client/src/index.ts:4: client may not import raft",
    "packages/client/src/index.ts:5: @holdfast/wire/dist/src/d.js is no entry of the package",
    "packages/client/src/index.ts:6: ws is not among the package's dependencies",
    "packages/client/src/index.ts:7: ../../server/src/x.js leaves the package's src",
    "packages/client/package.json:1: dependency level is imported by no file in src",
    "packages/client/package.json:1: dependency level is not pinned exactly: ^10.0.0",
    "packages/client/test/a.test.ts:2: ../../server/src/y.js leaves packages/client/; import the package by its name",
  ]);
});

test("purity: a simulated run knows no clock, no timer and no chance but its seed's", () => {
  const bad = [
    'import { once } from "node:events";',
    "Date.now(); performance.now(); Math.random(); setTimeout(f, 1);",
    "setImmediate(f); queueMicrotask(f); globalThis.setInterval(f, 1);",
    "for (const key in object) process.nextTick(f);",
    "AbortSignal.timeout(1); crypto.randomUUID();",
  ].join("\n");
  const good = [
    'import assert from "node:assert/strict";',
    'import type { Writable } from "node:stream";',
    "process.setImmediate(f); clock.timeout(1); await process.kill();",
    'if ("key" in object) random.fraction();',
  ].join("\n");
  const ahead = "setImmediate(f); queueMicrotask(f);";
  const tree = treeOf({
    "packages/simulator/src/run/a.ts": bad,
    "packages/simulator/src/run/b.ts": good,
    "packages/simulator/src/scheduler.ts": `${ahead} setTimeout(f, 1);`,
    "packages/simulator/src/process.ts": ahead,
    "packages/simulator/src/main.ts": bad,
    "packages/simulator/src/explore/main.ts": bad,
    "packages/simulator/test/a.test.ts": bad,
  });
  const place = "is banned in what a simulated run uses";
  assert.deepEqual(said(checkPurity(tree)), [
    `packages/simulator/src/run/a.ts:1: node:events ${place}`,
    `packages/simulator/src/run/a.ts:2: Date ${place}`,
    `packages/simulator/src/run/a.ts:2: performance ${place}`,
    `packages/simulator/src/run/a.ts:2: Math.random ${place}`,
    `packages/simulator/src/run/a.ts:2: setTimeout ${place}`,
    `packages/simulator/src/run/a.ts:3: setImmediate ${place}`,
    `packages/simulator/src/run/a.ts:3: queueMicrotask ${place}`,
    `packages/simulator/src/run/a.ts:3: setInterval ${place}`,
    `packages/simulator/src/run/a.ts:4: for ... in ${place}`,
    `packages/simulator/src/run/a.ts:4: process.nextTick ${place}`,
    `packages/simulator/src/run/a.ts:5: AbortSignal.timeout ${place}`,
    `packages/simulator/src/run/a.ts:5: crypto ${place}`,
    `packages/simulator/src/scheduler.ts:1: setTimeout ${place}`,
  ]);
});

test("dependencies: of another package's files what its exports name; its parts are for the simulator", () => {
  const entry = (/** @type {string} */ name) => ({ default: `./dist/src/${name}.js` });
  const source = [
    'import { a } from "@holdfast/server/parts";',
    'import { b } from "@holdfast/server/dist/src/b.js";',
    'import type { C } from "@holdfast/server";',
  ].join("\n");
  const dependencies = { "@holdfast/server": "0.1.0" };
  const tree = treeOf({
    "packages/server/package.json": manifest({ exports: { ".": entry("index"), "./parts": entry("parts") } }),
    "packages/simulator/package.json": manifest({ dependencies }),
    "packages/simulator/src/index.ts": source,
    "packages/cli/package.json": manifest({ dependencies }),
    "packages/cli/src/index.ts": source,
  });
  assert.deepEqual(said(checkDependencies(tree)), [
    "packages/cli/src/index.ts:1: @holdfast/server/parts is for the simulator alone",
    "packages/cli/src/index.ts:2: @holdfast/server/dist/src/b.js is no entry of the package",
    "packages/simulator/src/index.ts:2: @holdfast/server/dist/src/b.js is no entry of the package",
  ]);
});

test("dependencies: a pure package uses neither Node nor others' packages; a new package needs a row", () => {
  const tree = treeOf({
    "packages/wire/package.json": manifest({ dependencies: { msgpackr: "2.1.4", ws: "8.23.0" } }),
    "packages/wire/src/index.ts": 'import { Packr } from "msgpackr";\nimport fs from "node:fs";\nimport ws from "ws";',
    "packages/utils/package.json": manifest(),
  });
  assert.deepEqual(said(checkDependencies(tree)), [
    "packages/utils/package.json:1: package utils has no row in scripts/tidy/dependencies.js",
    "packages/wire/src/index.ts:2: node:fs in a pure package",
    "packages/wire/src/index.ts:3: ws in a pure package",
  ]);
});

test("dead code: files that nothing reaches, exports that nobody mentions", () => {
  const tree = treeOf({
    "package.json":
      '{ "scripts": { "tidy": "node scripts/tidy.js", "story": "node test/dist/story/story.js", "run": "node packages/raft/dist/src/run/main.js" } }',
    "docs/a.md": "`packages/raft/src/dead.ts`",
    "packages/raft/src/run/main.ts": "",
    "test/story/story.ts": 'import "./worker.js";',
    "test/story/worker.ts": "",
    "packages/raft/package.json": manifest({
      exports: {
        ".": { types: "./dist/src/index.d.ts", browser: "./dist/src/browser.js", default: "./dist/src/index.js" },
      },
      bin: { raft: "bin/raft.js" },
    }),
    "packages/raft/bin/raft.js": 'import "../dist/src/main.js";',
    "packages/raft/src/browser.ts": "export function connect(): void {}",
    "packages/raft/src/main.ts": 'new Worker(new URL("./worker.js", import.meta.url));',
    "packages/raft/src/worker.ts": "",
    "packages/raft/src/index.ts": 'export * from "./open.js";\nexport { used } from "./half-open.js";',
    "packages/raft/src/open.ts": "export const anything = 1;",
    "packages/raft/src/half-open.ts": [
      "export const used = 1;",
      "export function unused(): Signature {}",
      "export interface Signature {}",
      "export interface Forgotten {}",
    ].join("\n"),
    "packages/raft/src/dead.ts": "",
    "packages/raft/test/a.test.ts": 'import "./helper.js";',
    "packages/raft/test/helper.ts": "",
    "packages/raft/test/forgotten.ts": "",
    "scripts/tidy.js": "",
    "scripts/nobody.js": "",
  });
  assert.deepEqual(said(checkDeadCode(tree)), [
    "packages/raft/src/dead.ts:1: dead file: no entry, test, script or document reaches it",
    "packages/raft/test/forgotten.ts:1: dead file: no entry, test, script or document reaches it",
    "scripts/nobody.js:1: dead file: no entry, test, script or document reaches it",
    "packages/raft/src/half-open.ts:2: export unused is used by no other file",
    "packages/raft/src/half-open.ts:4: export Forgotten is used by no other file",
  ]);
});

test("lessons: each row names tests that exist and name it, and tests name no row that isn't there", () => {
  const row = (/** @type {string} */ name, /** @type {string} */ shown) => `| ${name} | elsewhere | here | ${shown} |`;
  const tree = treeOf({
    "docs/lessons.md": [
      row("A 1", '[a](../test/a.test.ts) "good"'),
      row("A 2", '[a](../test/a.test.ts) "bad"; [b](../test/b.test.ts) "good"'),
      row("A 3", "nothing"),
      row("A 4", '[a](../test/a.test.ts) "good"'),
      row("A 1", '[a](../test/a.test.ts) "good"'),
    ].join("\n"),
    "test/a.test.ts": '// A 1, A 2 and A 9\ntest("good", () => {}); const text = "A 8";',
  });
  assert.deepEqual(said(checkLessonsDocument(tree)), [
    'docs/lessons.md:2: A 2: test/a.test.ts has no test "bad"',
    "docs/lessons.md:2: A 2: test/b.test.ts does not exist",
    "docs/lessons.md:3: A 3 names no test",
    "docs/lessons.md:4: A 4: test/a.test.ts does not name this row",
    "docs/lessons.md:5: A 1 stands here twice",
    "test/a.test.ts:1: docs/lessons.md has no row A 9",
  ]);
});

test("files: length alarms; .only and notes of work left undone fail", () => {
  const note = "TO" + "DO";
  const tree = treeOf({
    "test/a.test.ts": `test.only("x", () => {});\nonly("y"); // ${note}: later`,
    "test/b.ts": "x\n".repeat(400),
    "test/c.ts": "x\n".repeat(401),
  });
  assert.deepEqual(said(checkFiles(tree)), [
    "test/a.test.ts:1: a test with .only hides the others",
    "test/a.test.ts:2: work left undone belongs in an issue",
  ]);
  assert.deepEqual(said(alarmLongFiles(tree)), ["test/c.ts:401: 401 lines: more than 400, split it by subject"]);
});

test("test functions: at most 70 lines, but for describe and suite", () => {
  const lines = (/** @type {number} */ count) => "  x();\n".repeat(count);
  const short = `test("short", async () => {\n${lines(68)}});\n`;
  const tree = treeOf({
    "test/a.test.ts": `describe("a", { timeout: f(5) }, () => {\n${short}${short}});\n`,
    "test/b.test.ts": `test("long", { skip: true }, async (t) => {\n${lines(69)}});\nfunction long(a = f(1)): void {\n${lines(69)}}\n`,
    "test/c.test.ts": `suite("s", () => { test("long", () => {\n${lines(69)}}); });`,
  });
  assert.deepEqual(said(checkTestFunctions(tree)), [
    "test/b.test.ts:1: a function of 71 lines: more than 70",
    "test/b.test.ts:72: a function of 71 lines: more than 70",
    "test/c.test.ts:1: a function of 71 lines: more than 70",
  ]);
});

test("documents: commands, options, scripts, files and links exist", () => {
  const tree = treeOf({
    "package.json": '{ "scripts": { "test": "", "verify": "" } }',
    "packages/cli/src/a.ts": 'program.command("lock <name>").option("--ttl <duration>", "x").option("-j, --json");',
    "scripts/tidy.js": "",
    "docs/b.md": "",
    "README.md": [
      "Run `npm test`, `npm run verify` and `npm run nothing`; npm run prose is free.",
      "```sh",
      "node scripts/tidy.js && node scripts/none.js",
      "npx holdfast lock a --ttl 5s --json -- cmd --anything",
      "holdfast unlock a --force",
      "```",
      "[b](docs/b.md) [c](docs/c.md) [docs](docs) [web](https://example.org/x)",
    ].join("\n"),
  });
  assert.deepEqual(said(checkDocuments(tree)), [
    'README.md:1: package.json has no script "nothing"',
    "README.md:3: scripts/none.js does not exist",
    'README.md:5: holdfast has no command "unlock"',
    'README.md:5: holdfast has no option "--force"',
    "README.md:7: dead link: docs/c.md",
  ]);
});

test("testing document: faults, invariants, bounds and rules are named, and found", () => {
  const faults = "const faultKinds = {\n  kill: { family: 1 },\n  wallJump: { family: 2 },\n};";
  const rules = 'const ruleTexts = {\n  guard: "x",\n  "hold-overlap": "y",\n} as const;\n  other: "z"';
  const bounds = 'throw new StuckError("no-leader", m);\nthrow new StuckError(\n  "open-calls",';
  const tree = treeOf({
    "docs/testing.md": "`kill`, `guard`, `no-leader`; wallJump and hold-overlap are no code here",
    "packages/simulator/src/run/fault-kinds.ts": faults,
    "packages/simulator/src/run/liveness.ts": bounds,
    "packages/simulator/src/invariants/invariant-error.ts": "export type RuleName = Other;",
    "packages/checker/src/verdict.ts": rules,
  });
  assert.deepEqual(said(checkTestingDocument(tree)), [
    "packages/simulator/src/run/fault-kinds.ts:1: docs/testing.md does not name the fault wallJump",
    "packages/simulator/src/invariants/invariant-error.ts:1: tidy finds no invariant here",
    "packages/simulator/src/run/liveness.ts:1: docs/testing.md does not name the bound open-calls",
    "packages/checker/src/verdict.ts:1: docs/testing.md does not name the rule hold-overlap",
  ]);
});
