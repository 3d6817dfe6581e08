/** What many runs come to: the table of docs/partition-testing.md, out of the `results.ndjson` that each call of the command leaves. */
import type { RunSummary } from "../run/summary.js";
import { table } from "./markdown.js";

/** A line of `results.ndjson`: a run without the text of its verdict. */
export type RunResult = Omit<RunSummary, "verdict"> & { readonly violations: number };

const hourMs = 3_600_000;

/** As Markdown: a paragraph of totals, a row for each scenario, and the outages over all. */
export function resultsText(results: readonly RunResult[]): string {
  const names = [...new Set(results.map(nameOf))].sort();
  const rows = names.map((name) =>
    rowOf(
      name,
      results.filter((each) => nameOf(each) === name),
    ),
  );
  const head = ["scenario", "nodes", "runs", "grants", "elections", "outage", "bound", "refused", "lost unguarded"];
  return [totalsOf(results), "", ...table(head, rows), "", outagesOf(results)].join("\n");
}

/** Those that were drawn from seeds are one kind. */
function nameOf({ scenario, seed }: RunResult): string {
  return seed === null ? scenario : "drawn from a seed";
}

function rowOf(name: string, runs: readonly RunResult[]): string[] {
  const faults = runs.flatMap((run) => run.faults);
  const bounds = faults.flatMap(({ boundMs }) => (boundMs === null ? [] : [boundMs]));
  const elections = sum(runs, ({ cluster }) => cluster.elections);
  const excused = elections - sum(runs, ({ cluster }) => cluster.ownElections);
  return [
    name,
    [...new Set(runs.map(({ nodes }) => String(nodes.length)))].sort().join(", "),
    String(runs.length),
    String(sum(runs, ({ load }) => load.grants)),
    excused === 0 ? String(elections) : `${elections} (${excused})`,
    faults.length === 0 ? "" : String(Math.round(Math.max(...faults.map(({ outageMs }) => outageMs)))),
    bounds.length === 0 ? "" : String(Math.round(Math.max(...bounds))),
    orNothing(sum(runs, ({ store }) => store.refused)),
    orNothing(sum(runs, ({ store }) => store.lostUnguarded)),
  ];
}

function totalsOf(results: readonly RunResult[]): string {
  const passed = results.filter(({ isPassed }) => isPassed).length;
  const cut = results.flatMap(({ faults }) =>
    faults.flatMap(({ bytesPassed }) => (bytesPassed === null ? [] : [bytesPassed])),
  );
  const inNamespaces = results.filter(({ mode }) => mode === "netns").length;
  const hours = sum(results, ({ startedAt, endedAt }) => endedAt - startedAt) / hourMs;
  const total = (of: (run: RunResult) => number): string => String(sum(results, of));
  return [
    `${results.length} runs of ${new Set(results.map(nameOf)).size} scenarios, ${passed} passed; ${inNamespaces} in namespaces,`,
    `${results.length - inNamespaces} over proxies; ${hours.toFixed(2)} hours of load, ${total(({ faults }) => faults.length)} faults,`,
    `${total(({ load }) => load.grants)} grants, ${total(({ cluster }) => cluster.elections)} elections. Rules of the checker broken:`,
    `${total(({ violations }) => violations)}. Guarded writes: ${total(({ store }) => store.guardedWrites)}, updates lost: ${total(({ store }) => store.lostGuarded)},`,
    `stale ones refused: ${total(({ store }) => store.refused)}. Unguarded writes: ${total(({ store }) => store.unguardedWrites)}, updates lost:`,
    `${total(({ store }) => store.lostUnguarded)}. Bytes that passed a way that was cut: ${sum(cut, (bytes) => bytes)}, in ${cut.length} cuts.`,
  ].join("\n");
}

function outagesOf(results: readonly RunResult[]): string {
  const bounded = results.flatMap(({ faults }) => faults.filter(({ boundMs }) => boundMs !== null));
  const sorted = bounded.map(({ outageMs }) => Math.round(outageMs)).sort((a, b) => a - b);
  if (sorted.length === 0) return "No fault had a bound.";
  const at = (fraction: number): number => sorted[Math.ceil(fraction * sorted.length) - 1] ?? 0;
  return `Over all ${sorted.length} faults with a bound: median ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms.`;
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

function orNothing(count: number): string {
  return count === 0 ? "" : String(count);
}
