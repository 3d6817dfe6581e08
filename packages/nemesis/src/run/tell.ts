/** A run in some lines, for the terminal. */
import { rules } from "@holdfast/checker";
import { logText } from "../report/report.js";
import type { RunSummary } from "./summary.js";

export function linesOf(summary: RunSummary, folder: string): readonly string[] {
  const { scenario, mode, load, cluster, store, unavailability, verdict, expectations, isPassed } = summary;
  const seconds = ((summary.endedAt - summary.startedAt) / 1_000).toFixed(0);
  const { judged, found } = verdict.counts;
  const told = rules.filter((rule) => judged[rule] > 0);
  const silent = rules.filter((rule) => judged[rule] === 0);
  return [
    `${isPassed ? "passed" : "FAILED"} ${scenario} (${mode}, ${summary.nodes.length} nodes, ${seconds} s): ${folder}`,
    `  ${load.operations} operations, ${load.grants} grants, ${load.unknown} unknown, ${load.losses} locks lost by their holders`,
    `  ${cluster.elections} elections (${cluster.elections - cluster.ownElections} for waits of the machine), ${cluster.failovers} failovers, terms ${cluster.termFrom} to ${cluster.termTo}, ${cluster.committed} entries`,
    `  unavailable ${unavailability.maxMs.toFixed(0)} ms at most (p99 ${unavailability.p99Ms.toFixed(0)} ms)`,
    `  guarded: ${store.guardedWrites} writes, ${store.refused} stale ones refused, ${store.lostGuarded} lost;` +
      ` unguarded: ${store.unguardedWrites} writes, ${store.lostUnguarded} lost`,
    ...summary.faults.map((fault) => {
      const bytes = fault.bytesPassed === null ? "" : `, ${fault.bytesPassed} bytes passed`;
      return `  fault: ${fault.text}: ${fault.outageMs.toFixed(0)} ms without a grant (p99 ${fault.waitP99Ms.toFixed(0)} ms), ${fault.elections} elections${bytes}`;
    }),
    `  verdict: ${told.length} rules judged ${told.reduce((sum, rule) => sum + judged[rule], 0)} facts, ${verdict.violations.length} violations`,
    `  ${told.map((rule) => `${rule} ${found[rule] === 0 ? "kept" : "BROKEN"} (${judged[rule]})`).join(", ")}`,
    ...(silent.length === 0 ? [] : [`  nothing to judge for: ${silent.join(", ")}`]),
    ...logText(summary.log).map((line) => `  ${line}`),
    ...verdict.violations.slice(0, 5).map(({ rule, message }) => `  broken: ${rule}: ${message}`),
    ...expectations.filter(({ isMet }) => !isMet).map(({ text, found }) => `  not met: ${text}: ${found}`),
  ];
}
