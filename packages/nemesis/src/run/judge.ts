/** What a scenario expects, held against what was found. */
import type { Verdict } from "@holdfast/checker";
import type { Expectations } from "../scenario/scenario.js";
import type { ClusterFigures, Expectation, FaultRecord, LoadFigures, StoreFigures } from "./summary.js";

export interface Findings {
  readonly faults: readonly FaultRecord[];
  readonly load: LoadFigures;
  readonly cluster: ClusterFigures;
  readonly store: StoreFigures;
  readonly verdict: Verdict;
  readonly problems: readonly string[];
  /** Exit codes of nodes that refused to start. */
  readonly refusals: readonly number[];
}

export function judge(expect: Expectations, found: Findings): readonly Expectation[] {
  const { load, cluster, store, verdict, problems } = found;
  const terms = cluster.termTo - cluster.termFrom;
  return [
    {
      text: "nothing went wrong that no fault explains",
      found: problems.join("; ") || "nothing",
      isMet: problems.length === 0,
    },
    { text: "updates lost behind the guard: none", found: String(store.lostGuarded), isMet: store.lostGuarded === 0 },
    ...cutsAreCuts(found.faults),
    ...backInTime(found.faults),
    atLeast("grants", load.grants, expect.grantsMin),
    ...demanded("elections", cluster.elections, expect.electionsMin),
    ...atMost("elections that no wait of the machine explains", cluster.ownElections, expect.electionsMax),
    ...atMost("terms, but for those elections", terms - (cluster.elections - cluster.ownElections), expect.termsMax),
    ...atMost("locks lost by workers", load.losses, expect.lossesMax),
    ...demanded("snapshots installed", cluster.installs, expect.installsMin),
    ...demanded("stale writes refused by the guard", store.refused, expect.refusedMin),
    ...demanded("updates lost without a guard", store.lostUnguarded, expect.lostUnguardedMin),
    ...Object.entries(expect.judged).map(([rule, least]) =>
      atLeast(`facts judged by ${rule}`, (verdict.counts.judged as Readonly<Record<string, number>>)[rule] ?? 0, least),
    ),
    ...refused(expect.refusesToStart, found.refusals),
  ];
}

function cutsAreCuts(faults: readonly FaultRecord[]): readonly Expectation[] {
  return faults.flatMap(({ text, bytesPassed }) =>
    bytesPassed === null
      ? []
      : [{ text: `no byte passes: ${text}`, found: String(bytesPassed), isMet: bytesPassed === 0 }],
  );
}

function backInTime(faults: readonly FaultRecord[]): readonly Expectation[] {
  return faults.flatMap(({ text, outageMs, boundMs }) =>
    boundMs === null
      ? []
      : [
          {
            text: `grants again within ${boundMs.toFixed(0)} ms: ${text}`,
            found: `${outageMs.toFixed(0)} ms`,
            isMet: outageMs <= boundMs,
          },
        ],
  );
}

function demanded(what: string, found: number, least: number): readonly Expectation[] {
  return least === 0 ? [] : [atLeast(what, found, least)];
}

function atLeast(what: string, found: number, least: number): Expectation {
  return { text: `${what}: at least ${least}`, found: String(found), isMet: found >= least };
}

function atMost(what: string, found: number, most: number | null): readonly Expectation[] {
  return most === null ? [] : [{ text: `${what}: at most ${most}`, found: String(found), isMet: found <= most }];
}

function refused(code: number | null, refusals: readonly number[]): readonly Expectation[] {
  if (code === null) return [];
  const isMet = refusals.includes(code);
  return [
    { text: `the damaged node refuses to start with exit code ${code}`, found: refusals.join(", ") || "none", isMet },
  ];
}
