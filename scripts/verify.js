/** Everything that is checked without running the product. Never edits; `npm run fix` does. Runs all checks, then says which failed. */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const tool = (/** @type {string} */ file) => path.join(top, "node_modules", file);
const checks = [
  { name: "types", command: [tool("typescript/bin/tsc"), "-b"] },
  { name: "lint", command: [tool("oxlint/bin/oxlint")] },
  { name: "format", command: [tool("@biomejs/biome/bin/biome"), "format", "--max-diagnostics=200"] },
  { name: "tidy", command: [path.join(top, "scripts/tidy.js")] },
  { name: "mutants", command: [path.join(top, "scripts/mutants.js"), "--check"] },
];

const failed = [];
for (const { name, command } of checks) {
  const { status, error } = spawnSync(process.execPath, command, { cwd: top, stdio: ["ignore", "inherit", "inherit"] });
  if (error !== undefined) console.error(error.message);
  if (status !== 0) failed.push(name);
}
console.log(failed.length === 0 ? "verify: all checks passed" : `verify: failed: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
