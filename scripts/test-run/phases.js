/** Runs the phases one after the other as one stream of events, with one summary at its end. */
import path from "node:path";
import { run } from "node:test";

/** A file that takes longer hangs. */
const fileTimeoutMs = 600_000;
const summaryLine = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/;

/**
 * Sets process.exitCode when a test fails.
 * @param {string} top
 * @param {readonly import("./plan.js").Phase[]} phases
 * @param {{ testNamePatterns?: RegExp[] }} filter
 */
export async function* runPhases(top, phases, filter) {
  /** @type {Map<string, number>} */
  const totals = new Map();
  for (const { name, files, concurrency } of phases) {
    const startMs = performance.now();
    const paths = files.map((file) => path.join(top, file));
    for await (const event of run({ files: paths, concurrency, timeout: fileTimeoutMs, ...filter })) {
      if (event.type === "test:fail" && !event.data.todo) process.exitCode = 1;
      const summary =
        event.type === "test:diagnostic" && event.data.nesting === 0 ? summaryLine.exec(event.data.message) : null;
      if (summary !== null) totals.set(summary[1], (totals.get(summary[1]) ?? 0) + Number(summary[2]));
      else yield event;
    }
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(0);
    yield diagnostic(`${name}: ${files.length} files in ${seconds} s`);
  }
  for (const [name, total] of totals) yield diagnostic(`${name} ${total}`);
}

/** @param {string} message */
function diagnostic(message) {
  return { type: "test:diagnostic", data: { nesting: 0, message } };
}
