/** Sends a backup over HTTP, at the pace of whoever reads it. */
import type { ServerResponse } from "node:http";
import { once } from "node:events";
import { BackupEncoder } from "@holdfast/storage";
import type { BackupHeader } from "@holdfast/storage";
import type { TakenBackup } from "./backup-taking.js";

/** A snapshot that lies on this node's disk. */
export interface BackupSource extends Pick<TakenBackup, "read" | "release"> {
  readonly header: BackupHeader;
}

/** Of a piece of a snapshot that is written by nobody's turn. */
export const recordsPerBackupPiece = 1_000;

/** A reader that takes nothing for so long is cut off: others wait for their backup. */
const idleMsMax = 60_000;

export const backupContentType = "application/octet-stream";

/** Ends the response, or breaks it off where there is no more to send: without its end record nobody takes it for a backup. Never rejects. */
export async function streamBackup(response: ServerResponse, source: BackupSource): Promise<void> {
  response.setTimeout(idleMsMax, () => response.destroy());
  // A reader that goes away shows as "close".
  response.on("error", () => undefined);
  try {
    const encoder = new BackupEncoder();
    await send(response, encoder.header(source.header));
    for (let chunk = 0, isDone = false; !isDone && !response.destroyed; chunk += 1) {
      const { bytes, done } = await source.read(chunk);
      if (bytes === null) throw new Error("the snapshot is gone");
      await send(response, encoder.chunk(bytes));
      isDone = done;
    }
    response.end(encoder.end());
  } catch {
    response.destroy();
  } finally {
    source.release();
  }
}

/** Resolves when there is room for more, or when nobody reads any more. */
async function send(response: ServerResponse, bytes: Buffer): Promise<void> {
  if (response.destroyed || response.write(bytes)) return;
  const over = new AbortController();
  await Promise.race([
    once(response, "drain", { signal: over.signal }),
    once(response, "close", { signal: over.signal }),
  ]).finally(() => over.abort());
}
