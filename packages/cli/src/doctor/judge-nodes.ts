/** What is wrong with each node by itself: its clock, its disk, its release, its loop, what is nearly used up. Pure. */
import { certainDifference, ownRate, possibleDifference, rateBoundsOf } from "./clock-rates.js";
import type { RateBounds } from "./clock-rates.js";
import type { Examined } from "./cluster-facts.js";
import { listed } from "./cluster-facts.js";
import { findingsOr, manual, ok, problem, warning } from "./finding.js";
import type { Finding } from "./finding.js";

const page = `${manual}#doctor`;
/** The promises hold up to here (P4, P5). */
const rateDifferenceMax = 0.01;
const rateDifferenceNoted = 0.005;
const mib = 1024 * 1024;
const freeBytesNeeded = 256 * mib;
const freeBytesNoted = 2_048 * mib;
/** One in a hundred of fewer writes is a bad moment, at the start say; then the median is judged, of as few as tell anything. */
const syncsForPercentile = 1_000;
const syncsForMedian = 20;
/** Of a limit. */
const shareNoted = 0.8;
/** Stalls in an hour of a node's life that are more than bad luck. */
const stallsPerHourMax = 6;
const hourMs = 3_600_000;

export function judgeNodes(examined: readonly Examined[]): readonly Finding[] {
  return [
    ...judgeClocks(examined),
    ...judgeSyncs(examined),
    ...judgeSpace(examined),
    ...judgeVersions(examined),
    ...judgeLimits(examined),
    ...judgeStalls(examined),
  ];
}

interface Clock {
  readonly id: string;
  readonly bounds: RateBounds;
}

const thisMachine = "this machine";

function judgeClocks(examined: readonly Pick<Examined, "id" | "samples">[]): readonly Finding[] {
  const clocks: Clock[] = examined.flatMap(({ id, samples }) => {
    const bounds = rateBoundsOf(samples);
    return bounds === null ? [] : [{ id, bounds }];
  });
  if (clocks.length === 0) return [];
  // Clients run somewhere else, and the promises are to them: the clock that measures is one of those that are compared.
  const all = [...clocks, { id: thisMachine, bounds: ownRate }];
  const middle = middleOf(all);
  const faults = clockFaults(all, middle);
  if (faults.length > 0) return faults;
  const most = Math.max(...clocks.map(({ bounds }) => possibleDifference(bounds, ownRate)));
  if (most < rateDifferenceNoted) return [ok("clock rate", `no clock differs by ${percent(most)} or more`)];
  const seen = `no clock is seen to differ; for the round trips it may be up to ${percent(most)}: --seconds 60 measures closer`;
  return [ok("clock rate", seen)];
}

/** The clock that most others are near to. */
function middleOf(all: readonly Clock[]): number {
  const rates = all.map(rateOf).sort((a, b) => a - b);
  return rates[Math.floor((rates.length - 1) / 2)] ?? 1;
}

function rateOf({ bounds }: Clock): number {
  return (bounds.low + bounds.high) / 2;
}

/** One for each clock that can't agree with another, and is the farther from the middle of the two. */
function clockFaults(all: readonly Clock[], middle: number): readonly Finding[] {
  const faults = new Map<string, { readonly difference: number; readonly finding: Finding }>();
  for (const [at, one] of all.entries()) {
    for (const other of all.slice(at + 1)) {
      const difference = certainDifference(one.bounds, other.bounds);
      if (difference < rateDifferenceNoted) continue;
      const isOther = Math.abs(rateOf(other) - middle) > Math.abs(rateOf(one) - middle);
      const [odd, even] = isOther ? [other, one] : [one, other];
      if ((faults.get(odd.id)?.difference ?? 0) >= difference) continue;
      const speed = rateOf(odd) > rateOf(even) ? "faster" : "slower";
      const make = difference >= rateDifferenceMax ? problem : warning;
      const finding = make("clock rate", {
        node: odd.id,
        seen: `its clock runs at least ${percent(difference)} ${speed} than that of ${even.id}`,
        why: `Leases hold as promised while clock rates differ by less than ${percent(rateDifferenceMax)}.`,
        mend: `look at the machine's clock source and time daemon (a machine that was suspended in between shows the same): ${page}`,
      });
      faults.set(odd.id, { difference, finding });
    }
  }
  return [...faults.values()].map(({ finding }) => finding);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.001 ? 3 : 2)} %`;
}

function judgeSyncs(examined: readonly Examined[]): readonly Finding[] {
  const faults = examined.flatMap(({ id, after }): readonly Finding[] => {
    const syncs = after.host?.syncs ?? null;
    const { electionTimeoutMs, heartbeatMs, diskStallMs } = after.file.timing;
    if (after.host?.isDiskOverdue === true) {
      const seen = `a write to its disk has been under way for more than ${diskStallMs} ms`;
      const why = "It acknowledges nothing meanwhile, and can't lead.";
      return [problem("disk sync", { node: id, seen, why, mend: `look at the disk: ${page}` })];
    }
    if (syncs === null || syncs.count < syncsForMedian) return [];
    const isMany = syncs.count >= syncsForPercentile;
    const judgedMs = isMany ? syncs.p99Ms : syncs.p50Ms;
    if (judgedMs < heartbeatMs) return [];
    const fault = {
      node: id,
      seen: `of its last ${syncs.count} writes ${isMany ? "one in a hundred" : "half"} take${isMany ? "s" : ""} ${shown(judgedMs)} ms or more (median ${shown(syncs.p50Ms)}, longest ${shown(syncs.maxMs)})`,
      why: "Each grant and release waits for the disks of a majority; above the election timeout they cost elections.",
      mend: `a disk of its own, without a busy neighbour: ${page}`,
    };
    return [judgedMs >= electionTimeoutMs ? problem("disk sync", fault) : warning("disk sync", fault)];
  });
  const all = examined.map(({ id, after }) => {
    const syncs = after.host?.syncs ?? null;
    return syncs === null
      ? `${id} none yet`
      : `${id} ${shown(syncs.p50Ms)}/${shown(syncs.p99Ms)}/${shown(syncs.maxMs)}`;
  });
  return findingsOr("disk sync", faults, `p50/p99/max in ms of the last writes: ${listed(all)}`);
}

function shown(ms: number): string {
  return ms < 10 ? ms.toFixed(1) : String(Math.round(ms));
}

function judgeSpace(examined: readonly Examined[]): readonly Finding[] {
  const faults = examined.flatMap(({ id, after }) => spaceFault(id, after.dataDirectory, after.disk) ?? []);
  const all = examined.map(
    ({ id, after }) => `${id} ${after.disk === null ? "unknown" : sizeText(after.disk.freeBytes)}`,
  );
  return findingsOr("disk space", faults, `free: ${listed(all)}`);
}

/** `disk`: of the file system that has `directory`. */
export function spaceFault(
  node: string | null,
  directory: string,
  disk: { readonly freeBytes: number } | null,
): Finding | null {
  if (disk === null || disk.freeBytes >= freeBytesNoted) return null;
  const fault = {
    node,
    seen: `${sizeText(disk.freeBytes)} are left where ${directory} is`,
    why: "A node whose disk is full ends with exit code 74; what it has promised stays.",
    mend: `make space: ${manual}#disk-full`,
  };
  return disk.freeBytes < freeBytesNeeded ? problem("disk space", fault) : warning("disk space", fault);
}

export function sizeText(bytes: number): string {
  const gib = bytes / (1_024 * mib);
  return gib >= 1 ? `${gib.toFixed(1)} GiB` : `${Math.floor(bytes / mib)} MiB`;
}

function judgeVersions(examined: readonly Examined[]): readonly Finding[] {
  const faults: Finding[] = [];
  const upgrade = `${manual}#rolling-upgrade`;
  const releases = new Set(examined.map(({ after }) => after.release));
  const protocols = new Set(examined.map(({ after }) => after.protocol));
  const clusterVersion = Math.max(0, ...examined.map(({ after }) => after.status?.clusterVersion ?? 0));
  if (releases.size > 1 || protocols.size > 1) {
    const told = examined.map(({ id, after }) => `${id} ${after.release} (protocol ${after.protocol})`);
    faults.push(
      warning("versions", {
        node: null,
        seen: `the nodes run different releases: ${listed(told)}`,
        why: "That is how an upgrade looks half-way; it isn't meant to stay.",
        mend: `go on with the upgrade, or go back: ${upgrade}`,
      }),
    );
  }
  for (const { id, after } of examined) {
    const { min, max } = after.versions;
    if (clusterVersion === 0 || (clusterVersion >= min && clusterVersion <= max)) continue;
    faults.push(
      problem("versions", {
        node: id,
        seen: `runs versions ${min} to ${max}, and the cluster is at ${clusterVersion}`,
        why: "It ends with exit code 83 as soon as it learns of it.",
        mend: `start the newer release there: ${upgrade}`,
      }),
    );
  }
  const reachable = Math.min(...examined.map(({ after }) => after.versions.max));
  if (faults.length === 0 && clusterVersion > 0 && reachable > clusterVersion) {
    faults.push(
      warning("versions", {
        node: null,
        seen: `the cluster is at version ${clusterVersion}, and all nodes run version ${reachable}`,
        why: "What is new in the release stays unused until the upgrade is finalized; afterwards there is no way back.",
        mend: "holdfast upgrade --finalize",
      }),
    );
  }
  const [release] = releases;
  return findingsOr(
    "versions",
    faults,
    `all run release ${release}; the cluster is at version ${clusterVersion || "-"}`,
  );
}

function judgeLimits(examined: readonly Examined[]): readonly Finding[] {
  const faults: Finding[] = [];
  const used = (node: string, what: string, count: number, max: number, option: string): void => {
    if (count < shareNoted * max) return;
    const fault = {
      node,
      seen: `${count} of ${max} ${what}`,
      why: "Above the limit clients are turned away (overloaded).",
      mend: `look for clients that open them without end; else raise limits.${option} in the configuration: ${manual}#sizing`,
    };
    faults.push(count >= max ? problem("limits", fault) : warning("limits", fault));
  };
  for (const { id, after } of examined) {
    const { limits } = after.file;
    if (after.status?.role === "leader") used(id, "sessions", after.status.sessions, limits.sessionsMax, "sessionsMax");
    used(id, "connections", after.connections, limits.clientConnectionsMax, "clientConnectionsMax");
  }
  const newest = examined.reduce((best, { after }) => Math.max(best, after.status?.lastApplied ?? 0), 0);
  const status = examined.find(({ after }) => after.status?.lastApplied === newest)?.after.status ?? null;
  const seen = status === null ? "not formed yet" : `sessions: ${status.sessions}, locks: ${status.locks}`;
  return findingsOr("limits", faults, seen);
}

function judgeStalls(examined: readonly Examined[]): readonly Finding[] {
  const told: string[] = [];
  const faults = examined.flatMap(({ id, before, after }): readonly Finding[] => {
    const stalls = after.host?.stalls ?? null;
    if (stalls === null) return [];
    if (stalls.count > 0) told.push(`${id} ${stalls.count}, the longest ${stalls.longestMs} ms`);
    const isSameLife = before.boot === after.boot;
    const isFresh = isSameLife && stalls.count > (before.host?.stalls.count ?? 0);
    const isFrequent = stalls.count > Math.max(stallsPerHourMax, (stallsPerHourMax * after.uptimeMs) / hourMs);
    if (!isFresh && !isFrequent) return [];
    return [
      warning("stalls", {
        node: id,
        seen: `its loop stood still ${stalls.count} times since its start, the longest for ${stalls.longestMs} ms${isFresh ? ", and while it was watched" : ""}`,
        why: "A node that stands still hears nobody: leaders lose their office, and locks of the dead are freed later.",
        mend: `give it a CPU and memory of its own, without swap: ${page}`,
      }),
    ];
  });
  return findingsOr(
    "stalls",
    faults,
    told.length === 0 ? "no loop has stood still" : `since the start: ${told.join("; ")}`,
  );
}
