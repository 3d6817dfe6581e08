/** What is kept of a run: JSON, and a picture of the cycles. */
import { mkdirSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pictureOf } from "./picture.js";

const folder = "docs/benchmarks";

/**
 * @typedef {ReturnType<typeof machine>} Machine
 * @typedef {{ machine: Machine, parts: Record<string, import("./results.js").Result> }} Report
 */

/**
 * Where it was measured, and how.
 * @param {import("./options.js").Options} options
 */
export function machine({ rounds, seconds, trials, scale }) {
  const cpus = os.cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    processor: cpus[0]?.model.trim() ?? "unknown",
    cores: cpus.length,
    rounds,
    seconds,
    trials,
    scale,
  };
}

/**
 * One JSON file for each part, so that parts can be measured one by one.
 * @param {string} top The repository.
 * @param {Report} report
 * @returns {string[]} The files, from the top.
 */
export function writeResults(top, { machine: where, parts }) {
  mkdirSync(path.join(top, folder), { recursive: true });
  const files = Object.entries(parts).map(([name, result]) => {
    return { file: `${folder}/${name}.json`, text: `${JSON.stringify({ machine: where, result }, null, 2)}\n` };
  });
  if (parts.cycles !== undefined) files.push({ file: `${folder}/cycles.svg`, text: pictureOf(parts.cycles) });
  for (const { file, text } of files) writeFileSync(path.join(top, file), text);
  return files.map(({ file }) => file);
}
