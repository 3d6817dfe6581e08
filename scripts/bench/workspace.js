/** The temporary folder in which everything runs. Nothing of it stays, and no process that was started either. */
import { mkdtempSync, rmSync, statSync, statfsSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { CannotRun } from "./cannot-run.js";
import { killAll } from "./processes.js";

/** Of a file system in memory (statfs(2)): a sync costs nothing there. */
const memoryTypes = new Set([0x01021994, 0x858458f6]);

/**
 * Throws CannotRun when `parent` is no folder on a disk.
 * @param {string} parent
 * @returns {string}
 */
export function makeWorkspace(parent) {
  if (!statSync(parent, { throwIfNoEntry: false })?.isDirectory()) throw new CannotRun(`${parent} is no folder`);
  if (memoryTypes.has(statfsSync(parent).type)) {
    throw new CannotRun(`${parent} is in memory, where a sync costs nothing: name a folder on a disk with --dir`);
  }
  const folder = mkdtempSync(path.join(parent, "holdfast-bench-"));
  process.on("exit", () => {
    killAll();
    // What has been killed may write for a moment yet.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
    process.on(signal, () => process.exit(128 + os.constants.signals[signal]));
  }
  return folder;
}
