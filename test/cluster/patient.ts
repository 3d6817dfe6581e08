/** For tests that measure no time: a dozen processes may share a slow machine. */
import { TestCluster } from "../harness/cluster.js";
import { until as untilWithin } from "../harness/until.js";

const timing = { heartbeatMs: 250, electionTimeoutMs: 3_000 };
export const limitMs = 120_000;

export async function until(what: string, test: () => boolean | Promise<boolean>): Promise<void> {
  await untilWithin(what, test, limitMs);
}

export function startPatient(): Promise<TestCluster> {
  return TestCluster.start({ timing, leaderMs: limitMs });
}
