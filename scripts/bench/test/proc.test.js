import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cpuSeconds, cpuSecondsIn, residentBytes, residentBytesIn } from "../proc.js";

/** Of a process whose command is `name`, with 250 ticks of user and 50 of system time. */
const statOf = (/** @type {string} */ name) =>
  `4711 (${name}) S 1 4711 4711 0 -1 4194560 10 20 30 40 250 50 7 8 20 0 11 0 1234 5678 90`;

describe("/proc", () => {
  it("tells user and system time together", () => {
    assert.equal(cpuSecondsIn(statOf("node")), 3);
  });

  it("may have anything in a command, also what looks like the end of it", () => {
    assert.equal(cpuSecondsIn(statOf("a b")), 3);
    assert.equal(cpuSecondsIn(statOf("evil) R 1 2")), 3);
  });

  it("is refused when it has no times", () => {
    assert.throws(() => cpuSecondsIn("4711 (node) S 1"), /no CPU times/);
    assert.throws(() => residentBytesIn("Name:\tnode\n"), /no VmRSS/);
  });

  it("tells resident memory", () => {
    assert.equal(residentBytesIn("Name:\tnode\nVmHWM:\t  9000 kB\nVmRSS:\t    2048 kB\n"), 2_097_152);
  });

  it("is read of processes that run", { skip: process.platform !== "linux" }, () => {
    const before = cpuSeconds([process.pid]);
    assert.ok(before > 0);
    assert.equal(cpuSeconds([]), 0);
    assert.ok(cpuSeconds([process.pid, process.pid]) >= 2 * before);
    assert.ok(residentBytes(process.pid) > 1_000_000);
    assert.throws(() => cpuSeconds([2 ** 30]), /ENOENT/);
  });
});
