/** What was aimed at, held against what was measured. */

/**
 * @typedef {import("./results.js").Result} Result
 * @typedef {{ text: string, value: number, min?: number, max?: number, digits: number }} Goal
 */
import { numberText } from "./table.js";

const etcd = ["etcd-put", "etcd-lock"];
const zooKeeper = ["zookeeper-ephemeral", "zookeeper-queue"];

/**
 * Lines for people, one for each goal of which everything was measured.
 * @param {Readonly<Record<string, Result>>} parts
 * @returns {string[]}
 */
export function goalLines(parts) {
  const goals = Object.entries(parts).flatMap(([name, result]) => goalsOf(name, result));
  return goals.filter(({ value }) => Number.isFinite(value)).map(lineOf);
}

/**
 * @param {string} part
 * @param {Result} result
 * @returns {Goal[]}
 */
function goalsOf(part, result) {
  switch (part) {
    case "cycles":
      return cyclesGoals(result);
    case "contended":
      return [
        goal("handoffs/s by those of etcd", ratio(result, "etcd-queue", "handoffs"), { min: 5 }),
        goal("handoffs/s by cycles/s of one client", handoffsByCycles(result), { min: 0.8 }),
      ];
    case "handoff":
      return [
        goal("handoffs/s with most waiters by those with fewest", 1 / ratio(result, null, "handoffs"), { min: 0.8 }),
      ];
    case "failover":
      return [
        goal("failover p50, ms", figure(result, "holdfast", "p50Ms"), { max: 150 }),
        goal("failover p99, ms", figure(result, "holdfast", "p99Ms"), { max: 500 }),
      ];
    case "flat":
      return [
        goal("cycles/s with most locks held by those with fewest", 1 / ratio(result, null, "cycles"), { min: 0.8 }),
        goal("heap bytes per held lock", figure(result, null, "bytesPerLock"), { max: 400 }),
        goal("own work of the longest turn, ms", figure(result, null, "longestOwnMs"), { max: 10 }),
        goal("longest turn with GC, without waiting for a core, ms", figure(result, null, "longestRunMs"), { max: 50 }),
        goal("restart, s", figure(result, null, "restartSeconds"), { max: 10 }),
      ];
    case "sessions":
      return Object.values(result.rows).flatMap(({ title, figures }) => [
        goal(`${title}: cores`, figures.cores.median, { max: 0.5 }),
        goal(`${title}: kB of memory per session`, figures.bytesPerSession.median, { max: 40 }),
        goal(`${title}: lost`, figures.lost.median, { max: 0 }),
      ]);
    case "idle":
      return [goal("busiest node while idle, % of a core", figure(result, "holdfast", "busiest"), { max: 1 })];
    case "overload":
      return [
        goal("goodput under overload by the peak", 1 / ratio(result, "overload", "done"), { min: 0.8 }),
        goal("leases lost under overload", figure(result, "overload", "lost"), { max: 0 }),
        goal("turns longer than a heartbeat under overload", figure(result, "overload", "late"), { max: 0 }),
      ];
    default:
      return [];
  }
}

/** @param {Result} result */
function cyclesGoals(result) {
  const least = (/** @type {readonly string[]} */ rows, /** @type {string} */ column) => {
    const ratios = rows.map((row) => ratio(result, row, column)).filter((value) => Number.isFinite(value));
    return ratios.length === 0 ? Number.NaN : Math.min(...ratios);
  };
  return [
    goal("cycles/s at 256 clients by those of etcd", least(etcd, "clients256"), { min: 15 }),
    goal("cycles/s at 256 clients by those of ZooKeeper", least(zooKeeper, "clients256"), { min: 15 }),
    goal("cycles/s at 256 clients by those of one Redis", ratio(result, "redis", "clients256"), { min: 1 }),
    goal("acquire p50 at 1 client by ZooKeeper's", 1 / least(zooKeeper, "acquireP50Ms"), { max: 0.5 }),
    goal("acquire p50 at 1 client by the floor", 1 / ratio(result, "floor", "acquireP50Ms"), { max: 1.3 }),
    goal("server CPU at 256 clients, us/cycle", figure(result, "holdfast", "cpuMicros"), { max: 60 }),
  ];
}

/** @param {Result} result */
function handoffsByCycles(result) {
  return figure(result, "holdfast", "handoffs") / figure(result, "holdfast", "oneClient");
}

/**
 * @param {string} text
 * @param {number} value NaN: not measured.
 * @param {{ min?: number, max?: number }} bounds
 * @returns {Goal}
 */
function goal(text, value, bounds) {
  return { text, value, ...bounds, digits: value < 20 && !Number.isInteger(value) ? 2 : 0 };
}

/**
 * @param {Result} result
 * @param {string | null} row Null: the last one.
 * @param {string} column
 */
function ratio({ rows }, row, column) {
  return rowOf(rows, row)?.figures[column]?.ratio ?? Number.NaN;
}

/**
 * @param {Result} result
 * @param {string | null} row Null: the last one.
 * @param {string} column
 */
function figure({ rows }, row, column) {
  return rowOf(rows, row)?.figures[column]?.median ?? Number.NaN;
}

/**
 * @param {Result["rows"]} rows
 * @param {string | null} row
 */
function rowOf(rows, row) {
  return row === null ? Object.values(rows).at(-1) : rows[row];
}

/** @param {Goal} goal */
function lineOf({ text, value, min, max, digits }) {
  const isMet = value >= (min ?? Number.NEGATIVE_INFINITY) && value <= (max ?? Number.POSITIVE_INFINITY);
  const wanted = min === undefined ? `at most ${max}` : `at least ${min}`;
  return `${isMet ? "met   " : "missed"}  ${text}: ${numberText(value, digits)}, wanted ${wanted}`;
}
