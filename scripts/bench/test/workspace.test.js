import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { CannotRun } from "../cannot-run.js";
import { makeWorkspace } from "../workspace.js";

describe("the folder in which servers run", () => {
  it("is refused when it isn't there, or is a file", () => {
    for (const parent of ["/nowhere/at/all", process.execPath])
      assert.throws(
        () => makeWorkspace(parent),
        (error) => error instanceof CannotRun && /is no folder/.test(error.message),
      );
  });

  it("is refused in memory, where a sync costs nothing", { skip: !existsSync("/dev/shm") }, () => {
    assert.throws(() => makeWorkspace("/dev/shm"), /in memory/);
  });
});
