/** Which test files run, and in which order. Sources are listed, not dist, where a deleted test may still lie. */
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";

/** What takes long, the longest first: a phase begins with these, for one that began last would keep a single core busy at the end. */
export const longest = [
  "packages/simulator/test/seeds-1.test.ts",
  "packages/simulator/test/seeds-2.test.ts",
  "test/cluster/chaos.test.ts",
  "test/cluster/member.test.ts",
  "test/cluster/backup.test.ts",
  "test/cluster/upgrade.test.ts",
  "test/cluster/doctor.test.ts",
  "test/cluster/damage.test.ts",
  "test/cluster/operations.test.ts",
];

/**
 * @typedef {"usual" | "fast" | "tools" | "stores" | "all"} Part usual: the product's, and the simulated seeds; tools: what tries the tools out
 * that judge the product, and the packed packages; stores: guards at stores other than PostgreSQL alone, what docs/fencing.md
 * shows of them, and the outbox; fast: all of these without real processes and without the simulated seeds.
 * @typedef {{ name: string, files: string[], concurrency: number }} Phase Paths of compiled files, from the top.
 * @param {string} top
 * @param {{ part: Part, patterns: readonly string[] }} options Patterns: parts of a source's path, or regular expressions.
 * @returns {Phase[]}
 */
export function planTests(top, { part, patterns }) {
  const expressions = patterns.map((pattern) => new RegExp(pattern));
  const isOfPart = (/** @type {string} */ file) => {
    if (part === "fast") return !areSeeds(file);
    return part === "all" || partOf(file) === part;
  };
  const isWanted = (/** @type {string} */ file) =>
    isOfPart(file) && (expressions.length === 0 || expressions.some((each) => each.test(file)));
  const folders = readdirSync(path.join(top, "packages")).map((name) => `packages/${name}/test`);
  const units = [...folders, "scripts"].flatMap((folder) => testsIn(top, folder)).filter(isWanted);
  const whole = part === "fast" ? [] : testsIn(top, "test").filter(isWanted);
  const runsAlone = (/** @type {string} */ file) => file.endsWith(".alone.test.ts");
  // Two cores: units mostly compute, and some wait for sockets and processes; real processes mostly wait, for one another and for time.
  return [
    { name: "units", files: longestFirst(units).map(compiled), concurrency: 3 },
    {
      name: "whole clusters",
      files: longestFirst(whole.filter((file) => !runsAlone(file))).map(compiled),
      concurrency: 4,
    },
    { name: "alone", files: whole.filter(runsAlone).map(compiled), concurrency: 1 },
  ].filter((phase) => phase.files.length > 0);
}

/** @param {string} file */
function partOf(file) {
  if (isOfTool(file)) return "tools";
  return isOfStore(file) ? "stores" : "usual";
}

/**
 * By its source, or compiled.
 * @param {string} file
 */
export function isOfStore(file) {
  return /^test\/(dist\/)?(fence\/(files|http|mysql|pgbouncer|redis|s3|sqlite)-[^/]*|docs\/(fencing|outbox)-[^/]*)\.test\.[jt]s$/.test(
    file,
  );
}

/**
 * What others would install, as older compilers and package checkers see it. By its source, or compiled.
 * @param {string} file
 */
export function isOfPackaging(file) {
  return /^test\/(dist\/)?packaging\/[^/]*\.test\.[jt]s$/.test(file);
}

/**
 * Scripts, what runs partitions, the simulator but for the seeds that it runs, and the packaging.
 * @param {string} file
 */
function isOfTool(file) {
  if (isOfPackaging(file)) return true;
  if (file.startsWith("packages/simulator/")) return !areSeeds(file);
  return file.startsWith("packages/nemesis/") || file.startsWith("scripts/");
}

/** @param {string} file */
function areSeeds(file) {
  return /^packages\/simulator\/test\/seeds-\d+\.test\.ts$/.test(file);
}

/**
 * @param {string[]} sources
 * @returns {string[]}
 */
function longestFirst(sources) {
  const first = longest.filter((file) => sources.includes(file));
  return [...first, ...sources.filter((file) => !longest.includes(file))];
}

/**
 * @param {string} top
 * @param {string} folder
 * @returns {string[]}
 */
function testsIn(top, folder) {
  if (!existsSync(path.join(top, folder))) return [];
  const found = [];
  for (const entry of readdirSync(path.join(top, folder), { withFileTypes: true })) {
    const name = `${folder}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== "node_modules" && entry.name !== "dist")
      found.push(...testsIn(top, name));
    if (entry.isFile() && /\.test\.[jt]s$/.test(entry.name)) found.push(name);
  }
  return found.sort();
}

/**
 * packages/x/test/a.test.ts -> packages/x/dist/test/a.test.js; test/a.test.ts -> test/dist/a.test.js.
 * @param {string} source
 */
function compiled(source) {
  if (source.endsWith(".js")) return source;
  return source
    .replace(/^(packages\/[^/]+)\/test\//, "$1/dist/test/")
    .replace(/^test\//, "test/dist/")
    .replace(/\.ts$/, ".js");
}
