/** A backup file is there as a whole or not at all, and never in the place of another that nobody gave up. */
import assert from "node:assert/strict";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { BackupEncoder, BackupError, BackupExistsError, readBackupFile, writeBackupFile } from "../src/index.js";
import type { BackupRecord } from "../src/index.js";
import { clusterId, firstBase, newPath, nodeId } from "./fixture.js";

const header = { clusterId, nodeId, base: firstBase, takenAtMs: 1, closingMs: 0 };

async function* source(chunkCount: number, breakAfter = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array> {
  const encoder = new BackupEncoder();
  yield encoder.header(header);
  for (let chunk = 0; chunk < chunkCount; chunk += 1) {
    if (chunk >= breakAfter) throw new Error("the line is dead");
    yield await Promise.resolve(encoder.chunk(Buffer.alloc(100_000, chunk)));
  }
  yield encoder.end();
}

async function* cut(chunkCount: number, pieces: number): AsyncGenerator<Uint8Array> {
  for await (const bytes of source(chunkCount)) {
    if (pieces-- <= 0) return;
    yield bytes;
  }
}

async function folder(): Promise<string> {
  const path = await newPath();
  await mkdir(path);
  return path;
}

async function recordsIn(path: string): Promise<BackupRecord["kind"][]> {
  const kinds: BackupRecord["kind"][] = [];
  for await (const record of readBackupFile(path)) kinds.push(record.kind);
  return kinds;
}

describe("backup files", () => {
  it("are written, and read back", async () => {
    const path = join(await folder(), "b");
    const written = await writeBackupFile(path, source(7), { overwrite: false });
    assert.deepEqual(written.header, header);
    assert.deepEqual([written.chunks, written.bytes], [7, (await readFile(path)).length]);
    assert.deepEqual(await recordsIn(path), ["header", ...Array.from({ length: 7 }, () => "chunk"), "end"]);
  });

  it("leave nothing behind when what comes is cut short, breaks off or is damaged", async () => {
    const path = await folder();
    const file = join(path, "b");
    const options = { overwrite: false };
    await assert.rejects(writeBackupFile(file, cut(3, 3), options), (error) => {
      return error instanceof BackupError && error.code === "cut_short";
    });
    await assert.rejects(writeBackupFile(file, source(3, 2), options), /the line is dead/);
    async function* damaged(): AsyncGenerator<Uint8Array> {
      for await (const bytes of source(3)) {
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
        yield bytes;
      }
    }
    await assert.rejects(writeBackupFile(file, damaged(), options), BackupError);
    assert.deepEqual(await readdir(path), []);
  });

  it("replace no file unless told so, nor ask for the bytes then", async () => {
    const path = await folder();
    const file = join(path, "b");
    await writeFile(file, "precious");
    async function* untouched(): AsyncGenerator<Uint8Array> {
      yield await Promise.reject(new Error("asked for bytes"));
    }
    await assert.rejects(writeBackupFile(file, untouched(), { overwrite: false }), BackupExistsError);
    assert.equal(await readFile(file, "utf8"), "precious");
    await assert.rejects(writeBackupFile(file, source(3, 1), { overwrite: true }), /the line is dead/);
    assert.equal(await readFile(file, "utf8"), "precious");
    await writeBackupFile(file, source(1), { overwrite: true });
    assert.deepEqual(await recordsIn(file), ["header", "chunk", "end"]);
    assert.deepEqual(await readdir(path), ["b"]);
  });

  it("don't replace one that came meanwhile", async () => {
    const path = await folder();
    const file = join(path, "b");
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield* source(1);
      await writeFile(file, "the other's");
    }
    await assert.rejects(writeBackupFile(file, slow(), { overwrite: false }), BackupExistsError);
    assert.equal(await readFile(file, "utf8"), "the other's");
    assert.deepEqual(await readdir(path), ["b"]);
  });
});
