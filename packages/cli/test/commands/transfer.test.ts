import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeAddress, NodeReport, NodeStatus } from "@holdfast/client";
import { transfer } from "../../src/commands/transfer.js";

const nodes: readonly NodeAddress[] = ["n1", "n2"].map((id, index) => ({ id, client: `h:${index + 1}` }));

/** A cluster in which a transfer came to nothing and `leader` leads. */
function failed(leader: string | null): Parameters<typeof transfer>[0] {
  const status: Partial<NodeStatus> = { id: "n1", role: leader === "n1" ? "leader" : "follower", term: 3, nodes };
  const other: Partial<NodeStatus> = { id: "n2", role: leader === "n2" ? "leader" : "follower", term: 3, nodes };
  const reports = [status, other].map((one, index) => ({
    endpoint: `h:${index + 1}`,
    status: one as NodeStatus,
    error: null,
  }));
  return { transfer: () => Promise.resolve(null), status: () => Promise.resolve(reports as NodeReport[]) };
}

test("a transfer that came to nothing says who leads", async () => {
  await assert.rejects(transfer(failed("n1"), undefined), /^[^:]+: no other node has taken over in time: n1 leads$/);
  await assert.rejects(transfer(failed("n1"), "n2"), /: n2 has not taken over in time: n1 leads$/);
  await assert.rejects(transfer(failed(null), "n2"), /: n2 has not taken over in time: nobody leads now$/);
});

test("one that came late has come all the same", async () => {
  assert.equal((await transfer(failed("n2"), "n2")).id, "n2");
});
