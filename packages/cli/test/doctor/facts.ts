/** A cluster of three in the best of health, to be maltreated by tests. */
import type { CheckupAnswer } from "@holdfast/server";
import { parseConfig } from "@holdfast/server";
import type { ClockSample } from "../../src/doctor/clock-rates.js";
import type { ClusterFacts, NodeFacts } from "../../src/doctor/cluster-facts.js";

/** All parts of facts can be changed here. */
export type Changeable<T> = T extends object ? { -readonly [Key in keyof T]: Changeable<T[Key]> } : T;

export const ids = ["n1", "n2", "n3"] as const;
export const gib: number = 1_024 ** 3;

export function addressesOf(id: string): { readonly id: string; readonly peer: string; readonly client: string } {
  const host = `10.0.0.${id.slice(1)}`;
  return { id, peer: `${host}:7201`, client: `${host}:7101` };
}

/** 16 readings in 3 s, each with a round trip of 2 ms. */
export function clockAt(rate: number): ClockSample[] {
  return Array.from({ length: 16 }, (_, at) => {
    const sentMs = 5_000 + at * 200;
    return { sentMs, receivedMs: sentMs + 2, monotonicMs: rate * (sentMs + 1) };
  });
}

export const config = parseConfig(JSON.stringify({ cluster: "test", nodes: ids.map(addressesOf) }), "cluster.json");

function checkup(id: string): CheckupAnswer {
  const isLeader = id === "n1";
  const voters = ids.map((each) => ({ ...addressesOf(each), instance: `i${each}` }));
  const { cluster, timing, limits } = config;
  const others = ids.filter((each) => each !== id);
  return {
    id,
    instance: `i${id}`,
    boot: 1,
    release: "1.0.0",
    runtime: "v20.19.0",
    protocol: 1,
    versions: { min: 1, max: 1 },
    uptimeMs: 3_600_000,
    health: { isLive: true, isReady: true, problem: null },
    file: { cluster, timing, limits, nodes: ids.map(addressesOf) },
    status: {
      id,
      role: isLeader ? "leader" : "follower",
      term: 4,
      leader: "n1",
      commitIndex: 1_000,
      lastApplied: 1_000,
      lastIndex: 1_000,
      snapshotIndex: 0,
      sessions: 7,
      locks: 9,
      clusterId: "cafe",
      version: "1.0.0",
      uptimeMs: 3_600_000,
      nodes: voters.map(({ id: each, client }) => ({ id: each, client })),
      clusterVersion: 1,
      versions: { min: 1, max: 1 },
    },
    host: {
      configuration: { voters, outgoing: [], learners: [] },
      configurationIndex: 0,
      removed: [],
      syncs: { count: 1_000, p50Ms: 1.5, p99Ms: 9, maxMs: 31 },
      isDiskOverdue: false,
      stalls: { count: 0, longestMs: 0, lastMsAgo: null },
      followers: isLeader ? others.map((each) => ({ id: each, behindEntries: 0, heardMsAgo: 30 })) : [],
    },
    refusedBeginning: null,
    links: others.map((each) => ({ id: each, isLinked: true })),
    connections: 12,
    dataDirectory: "/var/lib/holdfast",
    disk: { freeBytes: 50 * gib, totalBytes: 100 * gib },
  };
}

function node(id: string): NodeFacts {
  const endpoint = addressesOf(id).client;
  return { endpoint, before: checkup(id), after: checkup(id), error: null, samples: clockAt(1) };
}

export function healthy(): Changeable<ClusterFacts> {
  // As over a wire: no two nodes share a part.
  return JSON.parse(JSON.stringify({ nodes: ids.map(node), file: null })) as Changeable<ClusterFacts>;
}
