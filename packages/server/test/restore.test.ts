/** From a backup's file to a directory that a node starts from. */
import assert from "node:assert/strict";
import { mkdir, readFile, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { LockMachine } from "@holdfast/lock";
import type { Command } from "@holdfast/lock";
import type { Entry, EntryKind, Index, LogBase, Term } from "@holdfast/raft";
import {
  BackupError,
  DirectoryNotEmptyError,
  openDataDirectory,
  StorageError,
  writeBackupFile,
} from "@holdfast/storage";
import type { BackupHeader } from "@holdfast/storage";
import { encodeCommand, entryCodec } from "@holdfast/wire";
import { RestoreIndexError } from "../src/restore-index.js";
import { restoreFile } from "../src/restore.js";
import type { Restored } from "../src/restore.js";
import { backupBytes, salvageDirectory } from "../src/salvage.js";
import { loadMachine } from "../src/stored-machine.js";
import { pathInFolder } from "./node-harness.js";

const node = { id: "n9", peer: "127.0.0.1:1", client: "127.0.0.1:2" };
const key = (at: number): string => at.toString(16).padStart(32, "0");
const commands: readonly Command[] = [
  { kind: "openSession", key: key(1), ttlMs: 7_000, info: "" },
  { kind: "openSession", key: key(2), ttlMs: 9_000, info: "" },
  {
    kind: "acquire",
    session: 1,
    request: 1,
    settled: 1,
    seen: [],
    names: ["a"],
    mode: "exclusive",
    slots: 0,
    wait: true,
    lockDelayMs: 500,
    maxHoldMs: 0,
    info: "",
  },
];
const configuration = { voters: [{ ...node, instance: "i" }], outgoing: [], learners: [], removed: [] };

const takenAtMs = Date.UTC(2024, 11, 31);

function header(index: number): BackupHeader {
  const base: LogBase = { position: { term: 6 as Term, index: index as Index }, chain: 5, configuration };
  return { clusterId: "old", nodeId: "n2", base, takenAtMs, closingMs: 9_500 };
}

function machineOf(): LockMachine {
  const machine = new LockMachine();
  for (const [at, command] of commands.entries()) machine.apply(at + 1, command);
  return machine;
}

/** A clock that passes only while somebody sleeps. */
function world(startMs: number): Parameters<typeof restoreFile>[2] & { nowMs: number } {
  let names = 0;
  return {
    nowMs: startMs,
    wallMs() {
      return this.nowMs;
    },
    async sleep(ms: number) {
      this.nowMs += ms;
    },
    drawName: () => `name-${(names += 1)}`,
    readMachineBootId: () => "boot",
  };
}

let count = 0;
function newPath(): string {
  count += 1;
  return pathInFolder(`restore-${count}`);
}

async function stateIn(directory: string): Promise<{ machine: LockMachine; base: LogBase; term: number; id: string }> {
  const opened = await openDataDirectory({
    directory,
    nodeId: node.id,
    machineBootId: "boot",
    randomInstance: () => assert.fail("it has one"),
  });
  try {
    const { restored, store, identity } = opened;
    assert.ok(restored !== null && store !== null && identity.clusterId !== null);
    assert.deepEqual(restored.entries, []);
    const machine = await loadMachine(store);
    return { machine, base: restored.base, term: restored.hardState.term, id: identity.clusterId };
  } finally {
    await opened.close();
  }
}

describe("restore", () => {
  const startMs = Date.UTC(2027, 0, 1, 0, 0, 0, 250);
  const clockIndex = Math.floor(startMs / 1_000) * 2 ** 20;
  let file = "";

  before(async () => {
    file = newPath();
    await writeBackupFile(file, backupBytes(header(1_000), machineOf()), { overwrite: false });
  });

  function restore(directory: string, above: number | null = null, parts = world(startMs)): Promise<Restored> {
    return restoreFile(file, { directory, node, above }, parts);
  }

  it("makes a cluster of one voter: another id, a higher term, above the clock's index, closed for TTL and lock-delay", async () => {
    const directory = newPath();
    const restored = await restore(directory);
    assert.deepEqual(restored, {
      backup: header(1_000),
      clusterId: "name-1",
      index: clockIndex,
      term: 7,
      closedMs: 9_500,
      sessions: 2,
      isAheadOfClock: false,
    });
    const { machine, base, term, id } = await stateIn(directory);
    assert.deepEqual([term, id], [7, "name-1"]);
    assert.deepEqual(base.position, { term: 7, index: clockIndex });
    const voters = [{ ...node, instance: "name-2" }];
    assert.deepEqual(base.configuration, { voters, outgoing: [], learners: [], removed: [] });
    assert.deepEqual([machine.sessionCount, machine.holdCount], [0, 0]);
    assert.equal(machine.endReason(1), "restored");
    assert.deepEqual([...machine.delays()], [{ name: "", index: clockIndex, delayMs: 9_500 }]);
  });

  it("twice in one second: the second one waits, and lands higher", async () => {
    const parts = world(startMs);
    const first = await restore(newPath(), null, parts);
    assert.ok(parts.nowMs >= (Math.floor(startMs / 1_000) + 1) * 1_000, "not done before the second is over");
    const second = await restore(newPath(), null, parts);
    assert.equal(second.index, first.index + 2 ** 20);
    assert.notEqual(second.clusterId, first.clusterId);
  });

  it("refuses a used directory, a damaged file, a wrong clock and number, and leaves nothing then", async () => {
    const directory = newPath();
    await mkdir(directory);
    await writeFile(join(directory, "mine"), "");
    await assert.rejects(restore(directory), DirectoryNotEmptyError);
    await rm(join(directory, "mine"));
    await assert.rejects(restore(directory, null, world(0)), RestoreIndexError);
    await assert.rejects(restore(directory, 2 ** 53), RestoreIndexError);
    const bytes = await readFile(file);
    for (const [name, damaged] of [
      ["cut", bytes.subarray(0, bytes.length - 1)],
      ["flipped", Buffer.from(bytes).fill(bytes[200] === 0 ? 1 : 0, 200, 201)],
      ["other", Buffer.from("#!/bin/sh\necho hello\n")],
    ] as const) {
      const path = `${newPath()}-${name}`;
      await writeFile(path, damaged);
      await assert.rejects(restoreFile(path, { directory, node, above: null }, world(startMs)), BackupError, name);
    }
    const lying = newPath();
    const told = { ...header(1_000), closingMs: 1 };
    await writeBackupFile(lying, backupBytes(told, machineOf()), { overwrite: false });
    await assert.rejects(restoreFile(lying, { directory, node, above: null }, world(startMs)), BackupError);
    assert.deepEqual(await readdir(directory), []);
    await restore(directory, clockIndex + 5);
    assert.equal((await stateIn(directory)).base.position.index, clockIndex + 5);
  });

  it("refuses a backup whose index the clock can't vouch for, until somebody does", async () => {
    const path = newPath();
    await writeBackupFile(path, backupBytes(header(clockIndex + 3), machineOf()), { overwrite: false });
    const options = { directory: newPath(), node };
    const isUnknown = (error: unknown): boolean => error instanceof RestoreIndexError && error.code === "index_unknown";
    await assert.rejects(restoreFile(path, { ...options, above: null }, world(startMs)), isUnknown);
    // The clock has passed it a second later; the cluster may have gone further meanwhile.
    await assert.rejects(restoreFile(path, { ...options, above: null }, world(startMs + 1_000)), isUnknown);
    await assert.rejects(restoreFile(file, { ...options, above: null }, world(takenAtMs - 1)), isUnknown);
    const { index } = await restoreFile(path, { ...options, above: clockIndex + 4 }, world(startMs));
    assert.equal(index, clockIndex + 4);
  });
});

describe("salvage", () => {
  const startMs = Date.UTC(2027, 0);

  /** Entries with all the commands behind the first base, the last of which nobody may have committed; closed. */
  async function stopped(): Promise<string> {
    const directory = newPath();
    const opened = await openDataDirectory({
      directory,
      nodeId: node.id,
      machineBootId: "boot",
      randomInstance: () => "i",
    });
    const base: LogBase = { position: { term: 0 as Term, index: 0 as Index }, chain: 0, configuration };
    const { store } = await opened.form("old", base);
    let chain = 0;
    const entries = commands.map((command, at): Entry => {
      const [index, term, kind, payload] = [at + 1, 2, "command" as EntryKind, encodeCommand(command)];
      chain = entryCodec.chainFor(chain, index as Index, term as Term, kind, payload);
      return { index: index as Index, term: term as Term, kind, payload, chain };
    });
    const hardState = { term: 5 as Term, votedFor: null };
    await store.write({ hardState, truncateFrom: null, entries, chunk: null, removeThrough: null });
    await opened.close();
    await setTimes(directory, takenAtMs);
    return directory;
  }

  /** As if all of it had been written then. */
  async function setTimes(directory: string, atMs: number): Promise<void> {
    for (const name of await readdir(directory, { recursive: true })) {
      await utimes(join(directory, name), atMs / 1_000, atMs / 1_000);
    }
  }

  const plain = { force: false, above: null };

  it("takes all that a survivor's log leads to, and restores above it", async () => {
    const salvaged = await salvageDirectory(await stopped(), { ...plain, wallMs: () => takenAtMs });
    const { machine, problem, entries } = salvaged;
    assert.deepEqual([machine.sessionCount, machine.holdCount, problem, entries], [2, 1, null, 3]);
    const { base, ...others } = salvaged.header;
    assert.deepEqual(others, { clusterId: "old", nodeId: node.id, takenAtMs, closingMs: 9_500 });
    assert.deepEqual(base.position, { term: 5, index: 3 });
    const file = newPath();
    await writeBackupFile(file, backupBytes(salvaged.header, machine), { overwrite: false });
    const restored = await restoreFile(file, { directory: newPath(), node, above: null }, world(startMs));
    assert.deepEqual([restored.term, restored.closedMs, restored.sessions], [6, 9_500, 2]);
  });

  it("refuses a clock that lies before the last write, time and again, unless somebody knows the tokens", async () => {
    const directory = await stopped();
    const isUnknown = (error: unknown): boolean => error instanceof RestoreIndexError && error.code === "index_unknown";
    const late = { ...plain, wallMs: () => takenAtMs - 1 };
    await assert.rejects(salvageDirectory(directory, late), isUnknown);
    await assert.rejects(salvageDirectory(directory, late), isUnknown, "the first try has written nothing");
    const { header: found } = await salvageDirectory(directory, { ...late, above: 2 ** 51 });
    assert.equal(found.takenAtMs, takenAtMs);
  });

  it("takes a directory in quarantine only by force, and says why that is", async () => {
    const directory = await stopped();
    const opened = await openDataDirectory({
      directory,
      nodeId: node.id,
      machineBootId: "boot",
      randomInstance: () => assert.fail("it has one"),
    });
    await opened.quarantine("old copy: n1 knows more");
    await opened.close();
    await assert.rejects(salvageDirectory(directory, plain), StorageError);
    const { machine, problem } = await salvageDirectory(directory, { ...plain, force: true });
    assert.deepEqual([machine.holdCount, problem], [1, "old copy: n1 knows more"]);
  });
});
