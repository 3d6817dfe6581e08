/**
 * The processes that are started here. Each leads a group of its own: a terminal's Ctrl-C comes to the parent alone, and what a child has
 * started ends with it.
 */
import { spawn } from "node:child_process";
import os from "node:os";

/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();

/**
 * @typedef {{ code: number | null, signal: string | null, isLate: boolean, stdout: string, stderr: string }} Ending `isLate`: it was
 * ended because its time was over. Of what it said only the end is kept.
 */

/**
 * Runs Node in a process of its own. Rejects when it can't be started.
 * @param {readonly string[]} words
 * @param {{ cwd: string, msMax?: number }} options
 * @returns {Promise<Ending>}
 */
export function runNode(words, { cwd, msMax }) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, words, { cwd, stdio: ["ignore", "pipe", "pipe"], detached: true });
    running.add(child);
    const said = { stdout: "", stderr: "" };
    for (const name of /** @type {const} */ (["stdout", "stderr"])) {
      child[name].setEncoding("utf8").on("data", (text) => {
        said[name] = tail(said[name] + text);
      });
    }
    let isLate = false;
    const onLate = () => {
      isLate = true;
      kill(child);
    };
    const timer = msMax === undefined ? undefined : setTimeout(onLate, msMax);
    child.on("error", (error) => {
      running.delete(child);
      clearTimeout(timer);
      reject(error);
    });
    child.on("close", (code, signal) => {
      running.delete(child);
      clearTimeout(timer);
      resolve({ code, signal, isLate, ...said });
    });
  });
}

/** From now on SIGINT and SIGTERM end all children, then this process, with 130 or 143. */
export function endOnSignals() {
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
    process.on(signal, () => {
      for (const child of running) kill(child);
      process.exit(128 + os.constants.signals[signal]);
    });
  }
}

/** @param {import("node:child_process").ChildProcess} child */
function kill({ pid }) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The whole group has ended already.
  }
}

/** @param {string} text */
function tail(text) {
  return text.length > 65_536 ? text.slice(-65_536) : text;
}
