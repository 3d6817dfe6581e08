import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { check } from "@holdfast/checker";
import type { Verdict } from "@holdfast/checker";
import type { Command } from "@holdfast/lock";
import type { Entry } from "@holdfast/raft";
import { encodeCommand, entryCodec } from "@holdfast/wire";
import { replay } from "../../src/history/committed-log.js";
import type { NodeLog } from "../../src/history/committed-log.js";
import { Recorder } from "../../src/history/recorder.js";

const opening = (key: string): Command => ({ kind: "openSession", key, ttlMs: 2_000, info: "" });

/** A session at every index: each entry changes the state. */
function logOf(howMany: number): readonly Entry[] {
  let chain = 0;
  return Array.from({ length: howMany }, (_, at): Entry => {
    const index = (at + 1) as Entry["index"];
    const term = 1 as Entry["term"];
    const payload = encodeCommand(opening(String(index).padStart(32, "0")));
    chain = entryCodec.chainFor(chain, index, term, "command", payload);
    return { index, term, kind: "command", payload, chain };
  });
}

const entries = logOf(9);

function hashAt(index: number): string {
  return replay(entries, index).at(-1)?.stateHash ?? "";
}

function nodeLog(node: string, baseIndex: number, more: Partial<NodeLog> = {}): NodeLog {
  const tail = entries.filter(({ index }) => index > baseIndex);
  const baseHash = baseIndex === 0 ? null : hashAt(baseIndex);
  return { node, baseIndex, baseChain: 0, baseHash, tail, stateHash: hashAt(9), entries, isOwn: true, ...more };
}

function verdictOn(logs: readonly NodeLog[]): Verdict {
  const finals = logs.map(({ node }) => ({ node, commitIndex: 9, lastApplied: 9 }));
  const evidence = { origin: "test", nodes: finals.map(({ node }) => node), electionTimeoutMs: 500 };
  return check(new Recorder().history({ ...evidence, finals, logs, accepted: new Map() }));
}

describe("a run in which snapshots were taken", () => {
  it("is judged from the first entry on, with the snapshots", () => {
    const verdict = verdictOn([nodeLog("n1", 4), nodeLog("n2", 6, { entries: null }), nodeLog("n3", 0)]);
    assert.deepEqual(verdict.violations, []);
    // Every node's entries, two snapshots, and the terms of nine entries.
    assert.equal(verdict.counts.judged.agreement, 9 + 3 + 9 + 2 + 9);
    assert.equal(verdict.counts.judged.convergence, 3);
  });

  it("shows a snapshot that holds another state than its entries make", () => {
    const verdict = verdictOn([nodeLog("n1", 0), nodeLog("n2", 6, { entries: null, baseHash: hashAt(5) })]);
    assert.deepEqual(
      verdict.violations.map(({ rule }) => rule),
      ["agreement"],
    );
  });

  it("shows one of the very node that tells the log", () => {
    const verdict = verdictOn([nodeLog("n1", 4, { baseHash: hashAt(5) })]);
    assert.deepEqual(
      verdict.violations.map(({ rule }) => rule),
      ["agreement"],
    );
  });

  it("is judged by states alone when nobody's first entries are known", () => {
    const gone = { entries: null };
    const verdict = verdictOn([nodeLog("n1", 4, gone), nodeLog("n2", 4, gone)]);
    assert.deepEqual(verdict.violations, []);
    assert.equal(verdict.counts.judged.agreement, 2);
    assert.equal(verdict.counts.judged.convergence, 2);
    const apart = verdictOn([nodeLog("n1", 4, gone), nodeLog("n2", 4, { ...gone, stateHash: hashAt(8) })]);
    assert.deepEqual(
      apart.violations.map(({ rule }) => rule),
      ["convergence"],
    );
  });
});
