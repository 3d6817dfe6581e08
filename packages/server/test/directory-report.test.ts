/** A stopped directory through the eyes of a node that would start from it. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { LockMachine, versionRange } from "@holdfast/lock";
import type { Command } from "@holdfast/lock";
import type { Entry, EntryKind, Index, LogBase, Term } from "@holdfast/raft";
import { openDataDirectory, readMachineBootId } from "@holdfast/storage";
import { encodeCommand, encodeSnapshotPiece, entryCodec } from "@holdfast/wire";
import { reportDirectory } from "../src/directory-report.js";
import { pathInFolder } from "./node-harness.js";

const member = { id: "n1", instance: "i", peer: "127.0.0.1:1", client: "127.0.0.1:2" };
const configuration = { voters: [member], outgoing: [], learners: [], removed: [] };
const other = { ...member, id: "n2", instance: "j", peer: "127.0.0.1:3", client: "127.0.0.1:4" };
const opening: Command = { kind: "openSession", key: "1".padStart(32, "0"), ttlMs: 7_000, info: "" };

interface Payload {
  readonly kind: EntryKind;
  readonly payload: Uint8Array;
}

const command = (one: Command): Payload => ({ kind: "command", payload: encodeCommand(one) });
const sound: readonly Payload[] = [
  { kind: "noop", payload: new Uint8Array() },
  command(opening),
  { kind: "configuration", payload: entryCodec.encodeConfiguration({ ...configuration, learners: [other] }) },
  command({ kind: "setClusterVersion", version: 1 }),
];

interface Made {
  readonly payloads?: readonly Payload[];
  /** Of the state that stands at entry 2. */
  readonly snapshot?: Uint8Array;
}

let directories = 0;

async function stopped({ payloads = sound, snapshot }: Made): Promise<string> {
  const directory = pathInFolder(`d${(directories += 1)}`);
  const machineBootId = readMachineBootId();
  const opened = await openDataDirectory({ directory, nodeId: "n1", machineBootId, randomInstance: () => "i" });
  const base: LogBase = { position: { term: 0 as Term, index: 0 as Index }, chain: 0, configuration };
  const { store } = await opened.form("cafe", base);
  let chain = 0;
  const entries = payloads.map(({ kind, payload }, at): Entry => {
    const [index, term] = [(at + 1) as Index, 2 as Term];
    chain = entryCodec.chainFor(chain, index, term, kind, payload);
    return { index, term, kind, payload, chain };
  });
  const nothing = { hardState: null, truncateFrom: null, entries: [], chunk: null, removeThrough: null };
  await store.write({ ...nothing, hardState: { term: 5 as Term, votedFor: "n2" }, entries });
  const at = entries[1];
  if (snapshot !== undefined && at !== undefined) {
    const ended: LogBase = { position: { term: at.term, index: at.index }, chain: at.chain, configuration };
    await store.write({ ...nothing, chunk: { base: ended, chunk: 0, bytes: snapshot, done: true, origin: "own" } });
  }
  await opened.close();
  return directory;
}

function snapshotOf(machine: LockMachine): Uint8Array {
  return encodeSnapshotPiece([...(machine.beginSnapshot().next(10) ?? [])]).slice();
}

function machineAt2(): LockMachine {
  const machine = new LockMachine();
  machine.apply(2, opening);
  return machine;
}

describe("the report on a stopped directory", () => {
  it("reads entries, snapshot and state of a sound one", async () => {
    for (const snapshot of [null, snapshotOf(machineAt2())]) {
      const report = await reportDirectory(await stopped(snapshot === null ? {} : { snapshot }));
      assert.deepEqual(report.problems, []);
      assert.equal(report.identity?.nodeId, "n1");
      assert.deepEqual(report.database, {
        batchNumber: snapshot === null ? 2 : 3,
        term: 5,
        votedFor: "n2",
        snapshot: snapshot === null ? null : { index: 2, chunks: 1 },
        entries: 4,
        lastIndex: 4,
        lastTerm: 2,
        configuration: { voters: [member], outgoing: [], learners: [other] },
        tails: [],
      });
      assert.deepEqual(report.machine, { clusterVersion: 1, sessions: 1, locks: 0 });
      assert.ok(report.bytes > 8_192 && report.disk !== null);
    }
  });

  const refused: readonly (readonly [string, Made, number, RegExp])[] = [
    [
      "an entry that no release can have written, below the snapshot",
      {
        payloads: [{ kind: "command", payload: Uint8Array.of(0xc1) }, ...sound.slice(1)],
        snapshot: snapshotOf(machineAt2()),
      },
      70,
      /^the entry of index 1 can't be decoded: /,
    ],
    [
      "a configuration that can't be decoded",
      { payloads: [...sound, { kind: "configuration", payload: Uint8Array.of(0x90) }] },
      70,
      /^the entry of index 5 can't be decoded: /,
    ],
    [
      "a snapshot that the lock machine can't load",
      { snapshot: encodeSnapshotPiece([[9]]).slice() },
      74,
      /^the snapshot at index 2 is damaged/,
    ],
    [
      "a log that has reached a later version",
      { payloads: [...sound, command({ kind: "setClusterVersion", version: versionRange.max + 1 })] },
      83,
      /^the cluster is at version \d+, and this release runs versions 1 to \d+: start the newer release again/,
    ],
  ];
  for (const [name, made, exitCode, reason] of refused) {
    it(`tells ${name}`, async () => {
      const { problems, machine } = await reportDirectory(await stopped(made));
      assert.deepEqual(
        problems.map((problem) => problem.exitCode),
        [exitCode],
      );
      assert.match(problems[0]?.reason ?? "", reason);
      assert.equal(machine, null);
    });
  }

  it("tells damage, with what a restore would find", async () => {
    const directory = await stopped({});
    const identity = join(directory, "identity");
    const text = await readFile(identity, "latin1");
    await writeFile(identity, text.replace("n1", "n2"), "latin1");
    const { problems, database, remains } = await reportDirectory(directory);
    assert.equal(database, null);
    assert.deepEqual(
      problems.map(({ exit, exitCode, isQuarantine }) => ({ exit, exitCode, isQuarantine })),
      [{ exit: "storage", exitCode: 74, isQuarantine: false }],
    );
    assert.deepEqual(remains, { snapshotIndex: null, lastIndex: 4, unreadable: [] });
  });
});
