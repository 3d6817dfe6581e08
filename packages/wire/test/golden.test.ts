/**
 * The bytes of every kind, as they were decided. What is in a log or on a disk must stay readable, so a difference here
 * is a change of format: it needs a new kind or format version, not new golden bytes. Additions are written with
 * UPDATE_GOLDEN=1.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  decodeBase,
  decodeClientFrame,
  decodeCommand,
  decodeEntries,
  decodeHardState,
  decodePeerFrame,
  decodeServerFrame,
  decodeSnapshotPiece,
  encodeBase,
  encodeClientFrame,
  encodeCommand,
  encodeEntries,
  encodeHardState,
  encodePeerFrame,
  encodeServerFrame,
  encodeSnapshotPiece,
  entryCodec,
} from "../src/index.js";
import { base, configuration, entries, peerFrames, snapshotPiece, termOf } from "./peer-samples.js";
import { bytesOf, clientMessages, commands, hexOf, serverMessages, slotAcquire } from "./samples.js";

interface Row {
  readonly label: string;
  readonly bytes: Uint8Array;
  readonly value: unknown;
  decode(bytes: Uint8Array): unknown;
}

function rowsOf<T>(
  groups: Record<string, readonly T[]>,
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => unknown,
): Row[] {
  return Object.entries(groups).flatMap(([kind, values]) =>
    values.map((value, at) => ({ label: `${kind}-${at}`, bytes: new Uint8Array(encode(value)), value, decode })),
  );
}

function single<T>(
  label: string,
  value: T,
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => unknown,
): Row {
  return { label, bytes: new Uint8Array(encode(value)), value, decode };
}

const tables: Record<string, Row[]> = {
  commands: rowsOf(
    Object.fromEntries([
      ...Object.entries(commands).map(([kind, value]) => [kind, [value]]),
      ["slotAcquire", [slotAcquire]],
    ]),
    encodeCommand,
    decodeCommand,
  ),
  client: rowsOf(
    clientMessages,
    (message) => encodeClientFrame([message]),
    (bytes) => decodeClientFrame(bytes)[0],
  ),
  server: rowsOf(
    serverMessages,
    (message) => encodeServerFrame([message]),
    (bytes) => decodeServerFrame(bytes)[0],
  ),
  peer: rowsOf(peerFrames, encodePeerFrame, decodePeerFrame),
  stored: [
    single("entries", entries, encodeEntries, decodeEntries),
    single("hardState", { term: termOf(4), votedFor: "n1" }, encodeHardState, decodeHardState),
    single("hardState-noVote", { term: termOf(0), votedFor: null }, encodeHardState, decodeHardState),
    single("base", base, encodeBase, decodeBase),
    single("snapshotPiece", snapshotPiece, encodeSnapshotPiece, decodeSnapshotPiece),
    single("configuration", configuration, entryCodec.encodeConfiguration, entryCodec.decodeConfiguration),
  ],
};

function goldenPath(table: string): string {
  return fileURLToPath(new URL(`../../test/golden/${table}.txt`, import.meta.url));
}

for (const [table, rows] of Object.entries(tables)) {
  const path = goldenPath(table);
  if (process.env["UPDATE_GOLDEN"] === "1") {
    writeFileSync(path, rows.map((row) => `${row.label} ${hexOf(row.bytes)}\n`).join(""));
  }

  test(`${table}: the bytes are the golden ones`, () => {
    const golden = readFileSync(path, "utf8");
    assert.equal(rows.map((row) => `${row.label} ${hexOf(row.bytes)}\n`).join(""), golden);
  });

  test(`${table}: the golden bytes mean what was encoded`, () => {
    const golden = readFileSync(path, "utf8").trimEnd().split("\n");
    assert.equal(golden.length, rows.length);
    for (const [at, line] of golden.entries()) {
      const row = rows[at];
      assert.ok(row !== undefined);
      const [label, hex] = line.split(" ");
      assert.equal(label, row.label);
      assert.deepEqual(row.decode(bytesOf(hex ?? "")), row.value, label);
    }
  });
}
