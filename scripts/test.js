/**
 * Runs the compiled tests: `npm test` all, `npm test -- PATTERN...` those whose path matches, `--fast` those of packages only,
 * `--name REGEX` only tests of that name. Files in packages come first, two at a time, then test/ (real processes), four at a time; files
 * named *.alone.test.ts measure time and run one at a time at the end.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { planTests } from "./test-run/plan.js";
import { runPhases } from "./test-run/phases.js";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { fast: { type: "boolean", default: false }, name: { type: "string" } },
});
const phases = planTests(top, { isFast: values.fast, patterns: positionals });
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
  const { status } = spawnSync(process.execPath, [script], { cwd: top, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) process.exit(status ?? 1);
}
