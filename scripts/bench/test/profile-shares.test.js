import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sharesOf } from "../profile-shares.js";

/**
 * @param {readonly (readonly [functionName: string, url: string, micros: number])[]} samples
 * @returns {import("node:inspector").Profiler.Profile}
 */
function profileOf(samples) {
  const nodes = samples.map(([functionName, url], at) => ({
    id: at + 1,
    callFrame: { functionName, url, scriptId: "0", lineNumber: 0, columnNumber: 0 },
  }));
  return {
    nodes,
    startTime: 0,
    endTime: 0,
    samples: nodes.map(({ id }) => id),
    timeDeltas: samples.map(([, , micros]) => micros),
  };
}

/** @param {Record<string, number>} shares */
function aboveZero(shares) {
  return Object.fromEntries(Object.entries(shares).filter(([, share]) => share > 0));
}

describe("shares of a profile", () => {
  it("are by the file of a function, and by the name of what has no file", () => {
    const shares = sharesOf(
      profileOf([
        ["(idle)", "", 200],
        ["(garbage collector)", "", 100],
        ["writev", "", 50],
        ["writev", "file:///a/packages/server/dist/src/web-socket.js", 50],
        ["_batch", "file:///a/node_modules/classic-level/index.js", 100],
        ["unpack", "file:///a/node_modules/msgpackr/unpack.js", 100],
        ["decodeCommand", "file:///a/packages/wire/dist/src/command-codec.js", 100],
        ["set", "", 100],
        ["emit", "node:events", 100],
        ["log", "file:///a/node_modules/pino/lib/tools.js", 100],
      ]),
    );
    assert.deepEqual(aboveZero(shares), {
      idle: 20,
      collector: 10,
      sends: 5,
      database: 10,
      codec: 20,
      node: 5,
      runtime: 20,
      other: 10,
    });
  });

  it("are none of an empty profile", () => {
    assert.deepEqual(aboveZero(sharesOf(profileOf([]))), {});
  });
});
