/** Copies of the repository, each with its own links to the packages: a bug is planted, built and run there, never in the tree itself. */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { runNode } from "./children.js";

const scope = "@holdfast";

export class Copies {
  /** @param {string} top The tree that is copied. */
  constructor(top) {
    this.top = top;
    this.folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), "holdfast-mutants-")));
    this.count = 0;
  }

  /**
   * A copy of all files that git doesn't ignore, as they are now; not yet built.
   * @returns {string}
   */
  fresh() {
    const copy = this.#next();
    for (const file of filesOf(this.top)) {
      const from = path.join(this.top, file);
      // Tracked, but deleted just now.
      if (existsSync(from)) cpSync(from, path.join(copy, file), { preserveTimestamps: true });
    }
    linkModules(this.top, copy);
    return copy;
  }

  /**
   * A copy of a copy, with what was built there.
   * @param {string} copy
   * @returns {string}
   */
  again(copy) {
    const other = this.#next();
    // With other times than its own, what was built would look out of date.
    cpSync(copy, other, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
    return other;
  }

  remove() {
    // A process that has just been killed may have written meanwhile.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  #next() {
    this.count += 1;
    const copy = path.join(this.folder, String(this.count));
    mkdirSync(copy);
    return copy;
  }
}

/**
 * Compiles the simulator and all that it is made of.
 * @param {string} copy
 * @returns {Promise<string | null>} What the compiler complains of.
 */
export async function build(copy, project = "packages/simulator") {
  const tsc = path.join(copy, "node_modules/typescript/bin/tsc");
  const { code, signal, stdout, stderr } = await runNode([tsc, "-b", project], { cwd: copy });
  return code === 0 ? null : `${stdout}${stderr}`.trim() || `ended by ${signal ?? `exit code ${code}`}`;
}

/** @param {string} top */
function filesOf(top) {
  const options = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { status, stdout, stderr } = spawnSync("git", options, { cwd: top, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ls-files: ${stderr.trim()}`);
  return stdout.split("\0").filter((file) => file !== "");
}

/**
 * Other packages are linked; those of the workspace lead into the copy.
 * @param {string} top
 * @param {string} copy
 */
function linkModules(top, copy) {
  const modules = path.join(copy, "node_modules");
  mkdirSync(path.join(modules, scope), { recursive: true });
  for (const name of readdirSync(path.join(top, "node_modules"))) {
    if (name !== scope) symlinkSync(path.join(top, "node_modules", name), path.join(modules, name));
  }
  for (const folder of readdirSync(path.join(copy, "packages"))) {
    const manifest = path.join(copy, "packages", folder, "package.json");
    if (!existsSync(manifest)) continue;
    const { name } = JSON.parse(readFileSync(manifest, "utf8"));
    symlinkSync(path.join("../../packages", folder), path.join(modules, name));
  }
}
