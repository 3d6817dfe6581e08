/** A run on one page. */
import type { HistoryEvent, Rule, Verdict } from "@holdfast/checker";
import { ruleTexts, rules } from "@holdfast/checker";
import type { FaultRecord, RunSummary } from "../run/summary.js";
import { cell, table } from "./markdown.js";

export type ReportedFault = Pick<
  FaultRecord,
  "text" | "from" | "to" | "outageMs" | "waitP99Ms" | "boundMs" | "bytesPassed" | "elections" | "termFrom" | "termTo"
>;

export type ReportedRun = Pick<
  RunSummary,
  | "scenario"
  | "about"
  | "mode"
  | "seed"
  | "nodes"
  | "workers"
  | "electionTimeoutMs"
  | "ttlMs"
  | "startedWallTime"
  | "startedAt"
  | "endedAt"
  | "load"
  | "store"
  | "log"
  | "unavailability"
  | "expectations"
  | "isPassed"
> & {
  readonly faults: readonly ReportedFault[];
  readonly cluster: Pick<RunSummary["cluster"], "elections" | "failovers" | "termFrom" | "termTo" | "committed">;
  readonly verdict: Pick<Verdict, "violations" | "counts">;
};

/** The rest is in summary.json; a page has so much room. */
const violationsMax = 10;
/** Of one violation. */
const eventsMax = 4;

/** Markdown; the picture is beside it as timeline.svg. The same run gives the same text. */
export function reportMarkdown(run: ReportedRun, events: readonly HistoryEvent[]): string {
  const parts = [
    [`# ${run.scenario}: ${run.isPassed ? "passed" : "FAILED"}`, "", run.about],
    [settings(run)],
    ["![Timeline of the run](timeline.svg)"],
    ["## Expectations", "", ...expectations(run)],
    ["## Faults", "", ...faults(run)],
    ["## Figures", "", ...figures(run)],
    ["## Verdict", "", ...verdict(run, events)],
  ];
  return `${parts.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function settings(run: ReportedRun): string {
  const words = [
    `${run.nodes.length} nodes`,
    `${run.workers.length} workers`,
    run.mode === "netns" ? "network namespaces" : "proxies",
    `election timeout ${run.electionTimeoutMs} ms`,
    `TTL ${run.ttlMs} ms`,
    ...(run.seed === null ? [] : [`seed ${run.seed}`]),
    `${seconds(run.endedAt - run.startedAt)} of load from ${run.startedWallTime}`,
  ];
  return `${words.join(", ")}.`;
}

function expectations(run: ReportedRun): string[] {
  if (run.expectations.length === 0) return ["The scenario states none of its own."];
  return table(
    ["", "expected", "found"],
    run.expectations.map(({ text, found, isMet }) => [isMet ? "met" : "**not met**", text, found]),
  );
}

function faults(run: ReportedRun): string[] {
  if (run.faults.length === 0) return ["None."];
  const rows = run.faults.map((fault) => [
    at(fault.from, run),
    fault.to === null ? "" : at(fault.to, run),
    fault.text,
    duration(fault.outageMs),
    duration(fault.waitP99Ms),
    fault.boundMs === null ? "" : duration(fault.boundMs),
    `${fault.elections}`,
    fault.termFrom === fault.termTo ? `${fault.termTo}` : `${fault.termFrom} to ${fault.termTo}`,
    fault.bytesPassed === null ? "" : `${fault.bytesPassed}`,
  ]);
  const head = [
    "from",
    "to",
    "fault",
    "longest time without a grant",
    "p99",
    "bound",
    "elections",
    "term",
    "bytes passed",
  ];
  return table(head, rows);
}

function figures({ load, cluster, store, unavailability }: ReportedRun): string[] {
  const terms =
    cluster.termFrom === cluster.termTo ? `term ${cluster.termTo}` : `terms ${cluster.termFrom} to ${cluster.termTo}`;
  const rows: [string, string][] = [
    [
      "operations",
      `${load.operations}: ${load.grants} grants, ${load.releases} releases, ${load.unknown} of unknown outcome`,
    ],
    ["locks lost by their holders", `${load.losses}`],
    [
      "elections, failovers",
      `${cluster.elections}, ${cluster.failovers}; ${terms}; ${cluster.committed} entries committed`,
    ],
    ["unavailable", `${duration(unavailability.maxMs)} at most, p99 ${duration(unavailability.p99Ms)}`],
    [
      "guarded register",
      `${store.guardedWrites} writes; lost: ${store.lostGuarded}; stale ones refused: **${store.refused}**`,
    ],
    ["unguarded register", `${store.unguardedWrites} writes; lost: **${store.lostUnguarded}**`],
  ];
  return table(["", ""], rows);
}

function verdict(run: ReportedRun, events: readonly HistoryEvent[]): string[] {
  const { counts, violations } = run.verdict;
  const broken = rules.filter((rule) => counts.found[rule] > 0);
  const kept = rules.filter((rule) => counts.found[rule] === 0 && counts.judged[rule] > 0);
  const silent = rules.filter((rule) => counts.found[rule] === 0 && counts.judged[rule] === 0);
  const rows = broken.map((rule) => [rule, ruleTexts[rule], `${counts.found[rule]}`, `${counts.judged[rule]}`]);
  const shown = violations.slice(0, violationsMax);
  const more = violations.length - shown.length;
  return [
    ...(broken.length === 0
      ? ["No rule is broken."]
      : table(["broken", "what it says", "violations", "facts judged"], rows)),
    "",
    ...(shown.length === 0 ? [] : [...shown.map((each) => violationLine(each, run, events)), ""]),
    ...(more > 0 ? [`${more} more are in summary.json.`, ""] : []),
    `Kept, with the number of facts that were judged: ${kept.map((rule) => `${rule} ${judged(rule, counts)}`).join(", ")}.`,
    ...(silent.length === 0 ? [] : [`There was nothing to judge for: ${silent.join(", ")}.`]),
    "",
    ...logText(run.log),
  ];
}

/** How much of the log the rules that rest on it could see. */
export function logText({ toldBy, snapshots }: ReportedRun["log"]): string[] {
  const covered = snapshots.map(({ node, index, isWhole }) => {
    const how = isWhole ? "what it wrote before is known still" : "before that only its state was compared";
    return `${node} has a snapshot up to entry ${index} (${how})`;
  });
  const first =
    toldBy === null
      ? "**No node's log is known from the first entry on: the rules that rest on the committed log judged nothing.**"
      : `The committed log is judged from the first entry on, as written by ${toldBy}.`;
  return [covered.length === 0 ? first : `${first} ${covered.join("; ")}.`];
}

/** With the facts that the promise doesn't cover: clocks out of bounds, stopped clients, no quorum. */
function judged(rule: Rule, { judged: facts, excluded }: Verdict["counts"]): string {
  return excluded[rule] === 0 ? `${facts[rule]}` : `${facts[rule]} (${excluded[rule]} passed over)`;
}

function violationLine(
  { rule, message, events: places }: Verdict["violations"][number],
  run: ReportedRun,
  events: readonly HistoryEvent[],
): string {
  const told = places.slice(0, eventsMax).flatMap((place) => {
    const event = events[place];
    // In the file the header is the first line.
    return event === undefined ? [] : [`${event.kind} at ${at(event.at, run)} (line ${place + 2})`];
  });
  const where = told.length === 0 ? "" : `: ${told.join(", ")}`;
  return `- **${rule}**: ${cell(message)}${where}`;
}

/** After the beginning of the load. */
function at(ms: number, { startedAt }: ReportedRun): string {
  return seconds(ms - startedAt);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** What never ended has no number; in JSON it is null. */
function duration(ms: number | null): string {
  return ms === null || !Number.isFinite(ms) ? "no end" : `${Math.round(ms)} ms`;
}
