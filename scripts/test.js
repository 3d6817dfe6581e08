/**
 * Runs the compiled tests: `npm test` the product's, `--tools` those of the tools that judge it (scripts, the simulator but for its seeds)
 * and of the packed packages, `--stores` those of guards at stores other than PostgreSQL, `--fast` all of these without real processes and seeds,
 * `--all` everything; `npm test -- PATTERN...` those of all whose path matches, `--name REGEX` only tests of that name. Files in packages
 * come first, three at a time, then test/ (real processes), four at a time; files named *.alone.test.ts measure time and run one at a time
 * at the end.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { isOfPackaging, isOfStore, planTests } from "./test-run/plan.js";
import { runPhases } from "./test-run/phases.js";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ...flags("fast", "tools", "stores", "all"), name: { type: "string" } },
});
const phases = planTests(top, { part: partOf(), patterns: positionals });
const files = phases.flatMap((phase) => phase.files);
const missing = files.filter((file) => !existsSync(path.join(top, file)));

if (files.length === 0) {
  console.error(`test: no test file matches ${positionals.join(" ")}`);
  process.exitCode = 1;
} else if (missing.length > 0) {
  console.error(`test: not compiled: ${missing.join(", ")}; run npm run build`);
  process.exitCode = 1;
} else {
  if (files.some((file) => file.startsWith("test/"))) installDrivers();
  const events = runPhases(
    top,
    phases,
    values.name === undefined ? {} : { testNamePatterns: [new RegExp(values.name)] },
  );
  Readable.from(events).compose(new spec()).pipe(process.stdout);
}

/** Databases, SDKs and browsers that only tests need have a manifest of their own. */
function installDrivers() {
  const script = path.join(top, "scripts/test-drivers.js");
  if (!existsSync(script)) return;
  const words = [script];
  if (files.some(isOfStore)) words.push("--stores");
  if (files.some(isOfPackaging)) words.push("--packaging");
  const { status } = spawnSync(process.execPath, words, { cwd: top, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0 && process.env.HOLDFAST_SKIP_MISSING === undefined) process.exit(status ?? 1);
}

/** @param {readonly string[]} names */
function flags(...names) {
  return Object.fromEntries(names.map((name) => [name, { type: /** @type {const} */ ("boolean"), default: false }]));
}

function partOf() {
  if (values.fast) return "fast";
  if (values.tools) return "tools";
  if (values.stores) return "stores";
  return values.all || positionals.length > 0 || values.name !== undefined ? "all" : "usual";
}
