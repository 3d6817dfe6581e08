// Installs what only tests need (test/drivers: database drivers, an embedded PostgreSQL), unless it is there already.
// The stamp is written last and holds the lock file's hash: an installation that was cut short is made again.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const attemptsMax = 3;
const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), "test", "drivers");
const stampPath = join(folder, "node_modules", ".holdfast-stamp");
const wanted = createHash("sha256")
  .update(readFileSync(join(folder, "package-lock.json")))
  .digest("hex");

if (stamp() === wanted) {
  console.log("test drivers: installed");
} else {
  process.exitCode = install();
}

function install() {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const npm = npmCommand();
    // The folder is outside the workspaces: the settings of the npm that runs us must not be taken for its own.
    const result = spawnSync(npm.command, [...npm.arguments, "ci"], {
      cwd: folder,
      encoding: "utf8",
      env: environment(),
    });
    if (result.status === 0) {
      writeFileSync(stampPath, wanted);
      console.log("test drivers: installed just now");
      return 0;
    }
    const reason = result.error?.message ?? result.stderr.trim();
    console.error(`test drivers: npm ci failed in test/drivers (attempt ${attempt} of ${attemptsMax}): ${reason}`);
  }
  return 1;
}

function stamp() {
  try {
    return readFileSync(stampPath, "utf8");
  } catch {
    return null;
  }
}

function npmCommand() {
  const path = process.env.npm_execpath;
  const isNpm = path !== undefined && /npm-cli\.c?js$/.test(path);
  return isNpm ? { command: process.execPath, arguments: [path] } : { command: "npm", arguments: [] };
}

function environment() {
  const foreign = [
    "npm_config_local_prefix",
    "npm_config_prefix",
    "npm_config_workspace",
    "npm_config_workspaces",
    "npm_config_include",
  ];
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.includes(name.toLowerCase())));
}
