/** What the HTTP API says of sequencers while the cluster has not reached the version that brings them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualCluster } from "../virtual/virtual-cluster.js";
import { Judge } from "./document.js";
import { VirtualHttp } from "./virtual-http.js";
import type { Asking } from "./virtual-http.js";

test("sequencers are not there yet: 501, as documented, and locks are", async () => {
  const cluster = new VirtualCluster({ versions: { min: 1, max: 1 } });
  const http = new VirtualHttp(cluster, await cluster.leader());
  const judge = new Judge();
  const credential = await http.open();
  await http.hold(credential, 1, "a");
  const sequencer = `holdfast1.${"0".repeat(16)}.YQ.exclusive.-.7.${"A".repeat(86)}`;
  const asked: readonly ["sequencer" | "check", Asking][] = [
    ["sequencer", { credential, body: { of: 1, name: "a" } }],
    ["check", { body: { sequencer } }],
  ];
  for (const [operation, asking] of asked) {
    const { answered } = await http.ask(operation, asking);
    const { status, body } = answered ?? { status: 0, body: null };
    const { code, detail } = body as { readonly code: string; readonly detail: string };
    assert.deepEqual([status, code], [501, "incompatible"]);
    assert.match(detail, /^a sequencer needs cluster version 2, and the cluster is at 1: /);
    const headers = { "content-type": "application/problem+json" };
    judge.check("POST", `/v1/${operation}`, { status, headers, text: JSON.stringify(body) });
  }
  assert.deepEqual([...judge.seen], ["POST /v1/sequencer 501", "POST /v1/check 501"]);
});
