import { strict as assert } from "node:assert";
import { describe, test } from "node:test";
import type { Effect } from "@holdfast/lock";
import { createMetrics } from "../src/metrics.js";
import type { Metrics } from "../src/metrics.js";

/** Each series with its value; buckets left out. */
async function series(metrics: Metrics): Promise<Map<string, number>> {
  const { text } = await metrics.render();
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#") || line.includes("_bucket{")) continue;
    const at = line.lastIndexOf(" ");
    found.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return found;
}

function granted(session: number, request: number, name: string, token: number, slot: number | null = null): Effect[] {
  return [
    { kind: "outcome", session, request, outcome: { kind: "granted", grants: [{ name, token, slot }], maxHoldMs: 0 } },
    { kind: "changed", name, change: "granted", token, slot },
  ];
}

const attached = {
  figures: () => ({ term: 3, commitIndex: 90, lastApplied: 88, isLeader: true, sessions: 4, locks: 5, waiters: 6 }),
  modeFor: (name: string) => (name.startsWith("shared") ? ("shared" as const) : ("exclusive" as const)),
};

describe("metrics", () => {
  test("gauges are read when they are asked for, and missing before there is anything to read", async () => {
    const metrics = createMetrics({ monotonicMs: () => 0 });
    const before = await series(metrics);
    assert.equal(before.get("holdfast_raft_term"), undefined);
    let term = 3;
    metrics.attach({ ...attached, figures: () => ({ ...attached.figures(), term, waiters: term === 3 ? 6 : null }) });
    metrics.attachTransport({
      figures: () => ({ client: { connections: 7, bufferedBytes: 70 }, peer: { connections: 8, bufferedBytes: 80 } }),
    });
    const found = await series(metrics);
    const expected: [string, number][] = [
      ["holdfast_raft_term", 3],
      ["holdfast_raft_commit_index", 90],
      ["holdfast_raft_apply_lag", 2],
      ["holdfast_raft_leader", 1],
      ["holdfast_server_session_count", 4],
      ["holdfast_server_lock_count", 5],
      ["holdfast_server_waiter_count", 6],
      ['holdfast_transport_connection_count{kind="client"}', 7],
      ['holdfast_transport_connection_count{kind="peer"}', 8],
      ['holdfast_transport_buffered_bytes{kind="client"}', 70],
      ['holdfast_transport_buffered_bytes{kind="peer"}', 80],
      ['holdfast_transport_rejected_total{reason="origin"}', 0],
    ];
    for (const [name, value] of expected) assert.equal(found.get(name), value, name);
    assert.ok((found.get("process_resident_memory_bytes") ?? 0) > 1e6);
    assert.ok((found.get("process_cpu_seconds_total") ?? 0) > 0);
    assert.ok(found.has("nodejs_eventloop_lag_p99_seconds"));
    term = 4;
    const later = await series(metrics);
    assert.deepEqual([later.get("holdfast_raft_term"), later.get("holdfast_server_waiter_count")], [4, undefined]);
  });

  test("grants, expirations and revocations are counted at the serving leader only", async () => {
    const metrics = createMetrics({ monotonicMs: () => 0 });
    metrics.attach(attached);
    const effects: Effect[] = [
      ...granted(1, 1, "plain", 10),
      ...granted(1, 2, "shared:x", 11),
      ...granted(2, 1, "gpu", 12, 3),
      { kind: "sessionEnded", session: 9, reason: "expired" },
      { kind: "sessionEnded", session: 8, reason: "closed" },
      { kind: "outcome", session: 9, request: 1, outcome: { kind: "lost", reason: "expired", index: 20 } },
      { kind: "outcome", session: 7, request: 1, outcome: { kind: "lost", reason: "forced", index: 21 } },
      { kind: "outcome", session: 7, request: 2, outcome: { kind: "lost", reason: "max_hold", index: 22 } },
    ];
    metrics.noteEffects(effects, false);
    assert.equal((await series(metrics)).get('holdfast_server_grants_total{mode="exclusive"}'), undefined);
    metrics.noteEffects(effects, true);
    const found = await series(metrics);
    for (const mode of ["exclusive", "shared", "slot"])
      assert.equal(found.get(`holdfast_server_grants_total{mode="${mode}"}`), 1, mode);
    assert.equal(found.get("holdfast_server_expirations_total"), 1);
    assert.equal(found.get('holdfast_server_revocations_total{reason="forced"}'), 1);
    assert.equal(found.get('holdfast_server_revocations_total{reason="max_hold"}'), 1);
  });

  test("a wait is timed from its beginning to its grant, and forgotten when it ends otherwise or leadership does", async () => {
    let nowMs = 1_000;
    const metrics = createMetrics({ monotonicMs: () => nowMs });
    metrics.attach(attached);
    const waiting = (session: number): Effect => ({
      kind: "outcome",
      session,
      request: 1,
      outcome: { kind: "waiting", ahead: 1, holder: null },
    });
    metrics.noteRole("leader");
    metrics.noteEffects([waiting(1), waiting(2), waiting(3)], true);
    nowMs = 3_500;
    metrics.noteEffects(granted(1, 1, "plain", 5), true);
    metrics.noteEffects([{ kind: "outcome", session: 2, request: 1, outcome: { kind: "cancelled" } }], true);
    metrics.noteEffects(granted(2, 1, "plain", 6), true);
    metrics.noteRole("follower");
    metrics.noteEffects(granted(3, 1, "plain", 7), true);
    const found = await series(metrics);
    assert.equal(found.get('holdfast_server_queue_wait_duration_seconds_count{mode="exclusive"}'), 1);
    assert.equal(found.get('holdfast_server_queue_wait_duration_seconds_sum{mode="exclusive"}'), 2.5);
  });

  test("elections, syncs, appends and rejections", async () => {
    const metrics = createMetrics({ monotonicMs: () => 0 });
    for (const role of ["preCandidate", "candidate", "leader", "follower", "preCandidate", "follower"] as const)
      metrics.noteRole(role);
    metrics.observeFsync(0.004);
    metrics.observeAppend("n2", 0.25);
    metrics.noteRejected("slow_reader");
    const found = await series(metrics);
    assert.deepEqual(
      [
        found.get('holdfast_raft_elections_total{result="won"}'),
        found.get('holdfast_raft_elections_total{result="lost"}'),
        found.get("holdfast_raft_fsync_duration_seconds_count"),
        found.get('holdfast_raft_append_duration_seconds_sum{peer="n2"}'),
        found.get('holdfast_transport_rejected_total{reason="slow_reader"}'),
      ],
      [1, 1, 1, 0.25, 1],
    );
    const { text } = await metrics.render();
    assert.match(text, /holdfast_raft_fsync_duration_seconds_bucket\{le="0\.0025"\} 0\n.*le="0\.005"\} 1/);
  });

  test("two nodes in one process don't share figures", async () => {
    const first = createMetrics({ monotonicMs: () => 0 });
    const second = createMetrics({ monotonicMs: () => 0 });
    first.noteRejected("host");
    assert.equal((await series(second)).get('holdfast_transport_rejected_total{reason="host"}'), 0);
  });
});
