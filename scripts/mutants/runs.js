/** Runs of the simulator over a range of seeds, and what they say of a mutant. */
import { spawn } from "node:child_process";

/** A bug can make a run go on for ever; a run without one takes well below this. */
const msPerSeedMax = 5_000;
const startMs = 60_000;
const testMsMax = 180_000;

/**
 * @typedef {{ kind: "found", seed: number, rule: string, message: string } | { kind: "survived" } | { kind: "broken", problem: string }} Finding
 * `broken`: the simulator itself came to a bad end, which says nothing of its checks.
 */

/**
 * @param {string} copy
 * @param {number} first
 * @param {number} seeds
 * @returns {Promise<Finding>}
 */
export function simulate(copy, first, seeds) {
  // In one process the first seed that fails is the first that is told.
  const range = ["--first", String(first), "--seeds", String(seeds), "--workers", "1", "--stop"];
  const options = ["packages/simulator/dist/src/main.js", ...range];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, options, { cwd: copy, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let errors = "";
    let isLate = false;
    const timer = setTimeout(
      () => {
        isLate = true;
        child.kill("SIGKILL");
      },
      startMs + msPerSeedMax * seeds,
    );
    child.stdout.setEncoding("utf8").on("data", (text) => {
      // Runs tell much; only the line of a failure is of use, and it comes whole or at the very end.
      output = tail(output + text);
    });
    child.stderr.setEncoding("utf8").on("data", (text) => {
      errors = tail(errors + text);
    });
    child.on("error", (error) => resolve({ kind: "broken", problem: error.message }));
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (isLate) resolve({ kind: "broken", problem: `no end within ${startMs + msPerSeedMax * seeds} ms` });
      else resolve(findingIn(code, output, errors.trim() || `ended by ${signal ?? `exit code ${code}`}`));
    });
  });
}

/**
 * @param {string} copy
 * @param {string} test A compiled test, from the top.
 * @returns {Promise<boolean>} Whether it passes. One that can't be started doesn't.
 */
export function runTest(copy, test) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--test", test], { cwd: copy, stdio: "ignore", timeout: testMsMax });
    child.on("error", () => resolve(false));
    child.on("close", (code) => resolve(code === 0));
  });
}

/** @param {string} text */
function tail(text) {
  return text.length > 65_536 ? text.slice(-65_536) : text;
}

/**
 * @param {number | null} code
 * @param {string} output
 * @param {string} problem What is said when the output explains nothing.
 * @returns {Finding}
 */
export function findingIn(code, output, problem) {
  if (code === 0) return { kind: "survived" };
  const line = /^failed seed (\d+): ([^:\n]*): ?(.*)$/m.exec(output);
  if (code !== 1 || line === null) return { kind: "broken", problem };
  return { kind: "found", seed: Number(line[1]), rule: line[2], message: line[3] };
}

/**
 * How many seeds one run of several needed in the middle; Infinity when most needed more than they had.
 * @param {readonly number[]} needed
 */
export function medianOf(needed) {
  const sorted = [...needed].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.POSITIVE_INFINITY;
}

/**
 * The one found most often; of two, the one found first.
 * @param {readonly string[]} rules
 */
export function commonest(rules) {
  let best = "";
  let bestCount = 0;
  for (const rule of rules) {
    const count = rules.filter((other) => other === rule).length;
    if (count > bestCount) [best, bestCount] = [rule, count];
  }
  return best;
}
