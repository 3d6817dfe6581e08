import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { closedLoop } from "../load.js";

/** A service in this process; it tells what was asked of it. */
function serviceThat(/** @type {(name: string) => Promise<void>} */ grant) {
  const seen = { connections: 0, closed: 0, held: 0, names: new Set() };
  const connect = async () => {
    seen.connections += 1;
    return {
      acquire: async (/** @type {string} */ name) => {
        await grant(name);
        seen.names.add(name);
        seen.held += 1;
        return async () => {
          seen.held -= 1;
        };
      },
      close: async () => {
        seen.closed += 1;
      },
    };
  };
  return { seen, contender: { id: "fake", title: "fake", waits: true, connect } };
}

const times = { warmupMs: 20, measureMs: 60, pids: () => [process.pid] };

describe("clients in a loop", { skip: process.platform !== "linux" }, () => {
  it("share a connection by sixteen, and take a lock each", async () => {
    const { seen, contender } = serviceThat(() => sleep(1));
    const { cyclesPerSecond, acquireMs } = await closedLoop(contender, {
      ...times,
      clients: 33,
      nameOf: (client) => `own-${client}`,
    });
    assert.deepEqual([seen.connections, seen.closed, seen.names.size, seen.held], [3, 3, 33, 0]);
    assert.ok(acquireMs.length > 0 && cyclesPerSecond > 0);
    assert.ok(acquireMs.every((ms) => ms > 0));
  });

  it("end when a cycle fails, with their connections closed", async () => {
    const { seen, contender } = serviceThat(async () => {
      await sleep(5);
      throw new Error("refused");
    });
    await assert.rejects(closedLoop(contender, { ...times, clients: 17, nameOf: String }), /refused/);
    assert.equal(seen.closed, 2);
  });

  it("are not waited for when they wait themselves", async () => {
    const { seen, contender } = serviceThat((name) => (name === "0" ? sleep(1) : new Promise(() => undefined)));
    const { acquireMs } = await closedLoop(contender, { ...times, clients: 2, nameOf: String });
    assert.ok(acquireMs.length > 0);
    assert.equal(seen.closed, 1);
  });
});
