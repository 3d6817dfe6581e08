import assert from "node:assert/strict";
import { it } from "node:test";
import { NodeLogs } from "../../src/history/node-log.js";

const role = (name: string, term: number, reason = ""): string =>
  JSON.stringify({ role: name, term, reason, msg: `${name} in term ${term}` });

it("a node's log tells who leads and since when no more", () => {
  const logs = new NodeLogs();
  assert.deepEqual(logs.eventsOf("n1", "not JSON"), []);
  assert.deepEqual(logs.eventsOf("n1", role("candidate", 2)), []);
  assert.deepEqual(logs.eventsOf("n1", role("leader", 2)), [{ kind: "leader", node: "n1", term: 2 }]);
  const serving = JSON.stringify({ term: 2, msg: "serving as leader" });
  assert.deepEqual(logs.eventsOf("n1", serving), [{ kind: "serving", node: "n1", term: 2 }]);
  const stalled = JSON.stringify({ durationMs: 700, msg: "the loop was stalled" });
  assert.deepEqual(logs.eventsOf("n1", stalled), [{ kind: "stall", node: "n1", ms: 700 }]);
  assert.deepEqual(logs.eventsOf("n2", stalled), [], "only a leader moves deadlines");
  assert.deepEqual(logs.eventsOf("n1", role("follower", 3)), [{ kind: "deposed", node: "n1", term: 2 }]);
  const installed = JSON.stringify({ index: 40, term: 3, msg: "snapshot installed" });
  assert.deepEqual(logs.eventsOf("n2", installed), [{ kind: "installed", node: "n2", index: 40, stateHash: null }]);
  assert.equal(logs.waitMsIn(stalled), 700);
  assert.equal(logs.waitMsIn(role("follower", 3, "a write has not returned for 1096 ms")), 1_096);
  assert.equal(logs.waitMsIn(role("follower", 3, "heard leader n2")), 0);
});
