/** Runs the golden conversations; with --rewrite their recordings are renewed, to be read in the diff. */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { rewrite: { type: "boolean", default: false } } });
const script = path.join(path.dirname(fileURLToPath(import.meta.url)), "test.js");
const env = values.rewrite ? { ...process.env, UPDATE_GOLDEN: "1" } : process.env;
process.exitCode = spawnSync(process.execPath, [script, "--fast", "golden"], { stdio: "inherit", env }).status ?? 1;
