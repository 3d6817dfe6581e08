/**
 * Installs what has a manifest of its own, outside the workspaces so that `npm ci` stays short, unless it is there already. The stamp is
 * written last and holds the lock file's hash: an installation that was cut short is made again.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const attemptsMax = 3;

/**
 * @param {string} top The repository.
 * @param {string} folder Of the manifest, from the top.
 * @param {(text: string) => void} say What happened, a line each.
 * @returns {boolean} Whether it is installed now.
 */
export function installManifest(top, folder, say) {
  const home = path.join(top, folder);
  const stampPath = path.join(home, "node_modules", ".holdfast-stamp");
  const wanted = createHash("sha256")
    .update(readFileSync(path.join(home, "package-lock.json")))
    .digest("hex");
  if (stampIn(stampPath) === wanted) {
    say("installed");
    return true;
  }
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const npm = npmCommand();
    // The folder is outside the workspaces: the settings of the npm that runs us must not be taken for its own.
    const result = spawnSync(npm.command, [...npm.arguments, "ci"], {
      cwd: home,
      encoding: "utf8",
      env: environment(),
    });
    if (result.status === 0) {
      writeFileSync(stampPath, wanted);
      say("installed just now");
      return true;
    }
    const reason = result.error?.message ?? result.stderr.trim();
    say(`npm ci failed in ${folder} (attempt ${attempt} of ${attemptsMax}): ${reason}`);
  }
  return false;
}

/** @param {string} stampPath */
function stampIn(stampPath) {
  try {
    return readFileSync(stampPath, "utf8");
  } catch {
    return null;
  }
}

function npmCommand() {
  const file = process.env.npm_execpath;
  const isNpm = file !== undefined && /npm-cli\.c?js$/.test(file);
  return isNpm ? { command: process.execPath, arguments: [file] } : { command: "npm", arguments: [] };
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
