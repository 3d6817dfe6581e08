/**
 * Runs the client's tests, and two files with real clusters, on the releases of Node that test/nodes pins (Linux x64): those beside 20, which
 * develops it, and 24 (scripts/test-node24.js). Arguments go to scripts/test.js instead: other patterns, or --fast.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { installManifest } from "./own-manifest.js";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = "test/nodes";
/** A whole cluster each: over HTTP, and with the client and sequencers. */
const usual = ["^packages/(client|wire)/test/", "^test/cluster/(http-api|sequencers)\\.test"];

if (process.platform !== "linux" || process.arch !== "x64") {
  console.log(`test:nodes: skipped: no pinned Node for ${process.platform} ${process.arch}`);
} else if (!installManifest(top, folder, (text) => console.log(`${folder}: ${text}`))) {
  process.exitCode = 1;
} else {
  const failed = pinned().filter((name) => runTests(name) !== 0);
  if (failed.length > 0) console.log(`test:nodes: failed on ${failed.join(", ")}`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

/** @returns {string[]} */
function pinned() {
  const { dependencies } = JSON.parse(readFileSync(path.join(top, folder, "package.json"), "utf8"));
  return Object.keys(dependencies);
}

/** @param {string} name */
function runTests(name) {
  const binary = path.join(top, folder, "node_modules", name, "bin/node");
  const version = spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout.trim();
  console.log(`test:nodes: on ${version} (started by ${process.version})`);
  const words = process.argv.length > 2 ? process.argv.slice(2) : usual;
  const { status } = spawnSync(binary, [path.join(top, "scripts/test.js"), ...words], {
    cwd: top,
    stdio: ["ignore", "inherit", "inherit"],
  });
  return status ?? 1;
}
