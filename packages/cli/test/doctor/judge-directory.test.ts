/** What a stopped directory holds in, findings out. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { DirectoryReport } from "@holdfast/server";
import { findingsText } from "../../src/doctor/finding.js";
import type { Finding } from "../../src/doctor/finding.js";
import { judgeDirectory } from "../../src/doctor/judge-directory.js";
import { judgeCluster } from "../../src/doctor/judge-cluster.js";
import { addressesOf, gib, healthy, ids } from "./facts.js";

const sound: DirectoryReport = {
  directory: "/var/lib/holdfast",
  identity: {
    formatVersion: 1,
    nodeId: "n2",
    instance: "in2",
    clusterId: "cafe",
    boot: 3,
    machineBootId: "boot",
    quarantine: null,
  },
  markedBatch: 12,
  problems: [],
  database: {
    batchNumber: 12,
    term: 5,
    votedFor: "n1",
    snapshot: { index: 30, chunks: 3 },
    entries: 49,
    lastIndex: 49,
    lastTerm: 4,
    configuration: {
      voters: ids.map((id) => ({ ...addressesOf(id), instance: `i${id}` })),
      outgoing: [],
      learners: [],
    },
    tails: [],
  },
  machine: { clusterVersion: 1, sessions: 2, locks: 1 },
  remains: null,
  bytes: 70_000,
  disk: { freeBytes: 9 * gib, totalBytes: 10 * gib },
};

function linesOf(findings: readonly Finding[]): string[] {
  return findings.map(
    ({ severity, check, seen, mend }) => `${severity} ${check}: ${seen}${mend === null ? "" : ` -> ${mend}`}`,
  );
}

/** All that isn't "ok". */
function faultsOf(report: DirectoryReport): string[] {
  return linesOf(judgeDirectory(report).filter(({ severity }) => severity !== "ok"));
}

const replace =
  "holdfast member replace n2 NEW --peer HOST:PORT --client HOST:PORT (docs/operations.md#a-node-that-refuses-to-start)";
const damaged = "look at the disk, and leave the directory as it is";
const lastResort =
  "with no majority left: holdfast restore --from-data /var/lib/holdfast --to FILE --force (docs/operations.md#lost-majority)";

describe("judging a directory", () => {
  it("tells all of a sound one", () => {
    assert.deepEqual(linesOf(judgeDirectory(sound)), [
      "ok identity: node n2, instance in2, starts: 3, of cluster cafe",
      "ok mark: batch 12 was finished, and the database ends with batch 12",
      "ok hard state: term 5, vote for n1",
      "ok log: 49 entries, each read and chained to the one before; the last is 49 in term 4",
      "ok snapshot: of index 30, 3 chunks, all checksums right",
      "ok state: snapshot and entries lead to: cluster version 1, sessions: 2, locks: 1",
      "ok configuration: voters n1, n2, n3",
      "ok disk space: the directory has 70000 bytes; free: 9.0 GiB",
    ]);
  });

  it("tells what is harmless without alarm", () => {
    const { database, identity } = sound;
    assert.ok(database !== null && identity !== null);
    const tails = [{ file: "db/000005.log", found: "the record at 99 is cut short" }];
    const findings = judgeDirectory({ ...sound, database: { ...database, tails } });
    assert.deepEqual(new Set(findings.map(({ severity }) => severity)), new Set(["ok"]));
    assert.ok(
      linesOf(findings).includes(
        "ok log: db/000005.log: the record at 99 is cut short; it was never acknowledged, and the next start cuts it off",
      ),
    );
    const unformed = {
      ...sound,
      identity: { ...identity, clusterId: null },
      markedBatch: null,
      database: null,
      machine: null,
    };
    assert.deepEqual(faultsOf(unformed), []);
  });

  it("leads from each way to end to what mends it", () => {
    const exits = [
      ["storage", 74, false, `integrity: x -> ${damaged}; then ${replace}; ${lastResort}`],
      ["storage", 74, true, `quarantine: x -> ${damaged}; then ${replace}; ${lastResort}`],
      ["oldCopy", 81, true, `quarantine: x -> find the right directory, if it exists; else ${replace}`],
      ["newerFormat", 78, false, "integrity: x -> run the release that wrote it: docs/operations.md#rolling-upgrade"],
      ["wrongVersion", 83, false, "integrity: x -> run the release that wrote it: docs/operations.md#rolling-upgrade"],
      [
        "removed",
        84,
        true,
        "quarantine: x -> nothing is wrong with the cluster: take the node's unit away, and delete /var/lib/holdfast; a node in its place gets a new id and an empty directory: docs/operations.md#members",
      ],
      ["internal", 70, false, `integrity: x -> keep the directory and report this; then ${replace}`],
      ["usage", 2, false, "integrity: x -> see exit code 2: docs/operations.md#exit-codes"],
    ] as const;
    for (const [exit, exitCode, isQuarantine, line] of exits) {
      const problems = [{ exit, exitCode, isQuarantine, reason: "x" }];
      assert.deepEqual(faultsOf({ ...sound, problems }), [`problem ${line}`]);
    }
  });

  it("speaks of a removed node once", () => {
    const { identity } = sound;
    assert.ok(identity !== null);
    const problems = [
      { exit: "removed", exitCode: 84, isQuarantine: true, reason: "removed: n8 was removed" },
    ] as const;
    const findings = judgeDirectory({ ...sound, identity: { ...identity, nodeId: "n8" }, problems });
    const faults = findings.filter(({ severity }) => severity !== "ok");
    assert.deepEqual(
      faults.map(({ check, why }) => [check, why]),
      [["quarantine", "Neither its id nor this directory ever comes back (exit code 84)."]],
    );
  });

  it("says what is left of a damaged one, and of one whose identity is gone", () => {
    const problems = [{ exit: "storage", exitCode: 74, isQuarantine: false, reason: "identity is damaged" }] as const;
    const remains = { snapshotIndex: 30, lastIndex: 40, unreadable: ["db/000005.log: wrong checksum"] };
    const report = { ...sound, identity: null, problems, database: null, machine: null, remains };
    assert.match(faultsOf(report).join(), /holdfast member replace ID NEW/);
    const told = linesOf(judgeDirectory(report));
    assert.ok(
      told.includes(
        "ok remains: what is left goes from the snapshot of index 30 to index 40; holdfast restore --from-data --force takes that much",
      ),
    );
    assert.ok(told.includes("ok remains: not readable: db/000005.log: wrong checksum"));
  });

  it("warns of a node that its own log doesn't know, or knows with another directory", () => {
    const { identity } = sound;
    assert.ok(identity !== null);
    const mend = "holdfast member list tells who belongs to the cluster now";
    assert.deepEqual(faultsOf({ ...sound, identity: { ...identity, nodeId: "n8" } }), [
      `warning configuration: the configuration in its log doesn't have it: voters n1, n2, n3 -> ${mend}`,
    ]);
    assert.deepEqual(faultsOf({ ...sound, identity: { ...identity, instance: "other" } }), [
      `warning configuration: the configuration in its log has it with another directory: voters n1, n2, n3 -> ${mend}`,
    ]);
  });

  it("warns of a disk that fills", () => {
    assert.match(
      faultsOf({ ...sound, disk: { freeBytes: gib, totalBytes: 2 * gib } }).join(),
      /^warning disk space: 1.0 GiB/,
    );
    assert.deepEqual(faultsOf({ ...sound, disk: null }), []);
  });
});

describe("findings", () => {
  it("are printed the worst first, with why and what mends it, and nothing in them steers a terminal", () => {
    const facts = healthy();
    const [, second] = facts.nodes;
    const status = second?.after?.status ?? null;
    assert.ok(status !== null);
    status.clusterId = "be\u001b[2Jef";
    const text = findingsText(judgeCluster(facts));
    const lines = text.split("\n");
    const told = "these addresses lead to 2 clusters: cafe (n1, n3), be\\u001b[2Jef (n2)";
    assert.equal(lines[0], `problem  cluster id  ${told}`);
    assert.match(lines[1] ?? "", /^ {21}Clients of one take/);
    assert.match(lines[2] ?? "", /^ {21}-> stop the nodes of the one/);
    assert.equal(lines[3], "ok       reachable   all nodes answer: n1, n2, n3");
    assert.equal(lines.at(-2), "1 problem");
    assert.match(findingsText(judgeCluster(healthy())), /\n\nnothing is wrong\n$/);
  });

  it("point to pages that exist", () => {
    const manual = readFileSync(new URL("../../../../../docs/operations.md", import.meta.url), "utf8");
    const anchors = [...manual.matchAll(/^#{2,3} (.+)$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replace(/[^a-z0-9 -]/g, "")
        .replaceAll(" ", "-"),
    );
    for (const name of ["judge-cluster", "judge-configuration", "judge-nodes", "judge-directory"]) {
      const source = readFileSync(new URL(`../../../src/doctor/${name}.ts`, import.meta.url), "utf8");
      const named = [...source.matchAll(/\$\{manual\}#([a-z0-9-]+)/g)].map(([, anchor = ""]) => anchor);
      assert.ok(named.length > 0);
      for (const anchor of named) assert.ok(anchors.includes(anchor), `${name}: ${anchor}`);
    }
  });
});
