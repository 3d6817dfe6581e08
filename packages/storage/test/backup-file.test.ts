/** A backup file is there as a whole or not at all, and never in the place of another that nobody gave up. */
import assert from "node:assert/strict";
import { lstat, mkdir, readFile, readdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  BackupEncoder,
  BackupError,
  BackupExistsError,
  BackupFileError,
  NotAFileError,
  readBackupFile,
  writeBackupFile,
} from "../src/index.js";
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

  it("take no name from what is no file, whatever they are told", async () => {
    const path = await folder();
    const [target, link, dangling, nested, socket] = ["target", "link", "dangling", "nested", "socket"].map((name) =>
      join(path, name),
    ) as [string, string, string, string, string];
    await writeFile(target, "precious");
    await symlink(target, link);
    await symlink(join(path, "nowhere"), dangling);
    await mkdir(nested);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    for (const overwrite of [false, true]) {
      for (const [name, kind] of [
        [link, /link is a symbolic link/],
        [dangling, /dangling is a symbolic link/],
        [nested, /nested is a folder/],
        [socket, /socket is a device, pipe or socket/],
      ] as const) {
        await assert.rejects(writeBackupFile(name, source(1), { overwrite }), (error) => {
          return error instanceof NotAFileError && kind.test(error.message);
        });
      }
    }
    assert.equal((await lstat(link)).isSymbolicLink(), true);
    assert.equal(await readFile(target, "utf8"), "precious");
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield* source(1);
      await symlink(target, join(path, "late"));
    }
    await assert.rejects(writeBackupFile(join(path, "late"), slow(), { overwrite: true }), NotAFileError);
    server.close();
  });

  it("say in words what the system refuses, and of which file", async () => {
    const path = await folder();
    await writeFile(join(path, "file"), "");
    const written = (name: string): Promise<unknown> =>
      writeBackupFile(join(path, name), source(1), { overwrite: true });
    const saying = (text: string) => (error: unknown) =>
      error instanceof BackupFileError && error.message === `${path}/${text}`;
    await assert.rejects(written("none/b"), saying("none/b can't be written: no such file or directory (ENOENT)"));
    await assert.rejects(written("file/b"), saying("file/b can't be written: not a directory (ENOTDIR)"));
    await assert.rejects(recordsIn(join(path, "b")), saying("b can't be read: no such file or directory (ENOENT)"));
    await assert.rejects(recordsIn(`${path}/.`), saying(". can't be read: illegal operation on a directory (EISDIR)"));
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
