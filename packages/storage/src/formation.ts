/**
 * Making the database of a node that was just formed, so that a crash at any moment leaves the node unformed or formed. The order:
 *
 * 1. `db.tmp` is built and synced;
 * 2. it is renamed to `db`;
 * 3. `mark` is made;
 * 4. `identity` gets the cluster id. Only now is the node formed.
 *
 * A node has promised nothing before step 4, so whatever steps 1 to 3 left is removed at the next start, and the formation begun anew.
 */
import type { LogBase } from "@holdfast/raft";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { createDatabase } from "./database.js";
import { isThere, syncDirectory, syncFile } from "./files.js";
import { identityFile } from "./identity.js";
import { mergedRows, readDatabaseFiles } from "./leveldb/database-files.js";
import { createMark, markFile, readMark } from "./mark.js";
import { databaseName } from "./open-store.js";
import { readRow, recover } from "./recovery.js";
import { baseKey, encodeFirstBase, encodeMeta, encodeOwner, metaKey, ownerKey } from "./rows.js";
import type { Owner } from "./rows.js";
import { damaged } from "./storage-error.js";
import type { Identity } from "./types.js";

const temporaryName = `${databaseName}.tmp`;
/** Where a restore builds a directory, inside it. */
export const buildingName = "restoring";
const firstBatch = 1;

/** Steps 1 to 3. */
export async function buildDatabase(directory: string, owner: Owner, base: LogBase): Promise<void> {
  const temporary = join(directory, temporaryName);
  await rm(temporary, { recursive: true, force: true });
  const { position, chain } = base;
  const meta = encodeMeta({
    batchNumber: firstBatch,
    generation: 0,
    firstIndex: position.index + 1,
    last: { ...position, chain },
    snapshotIndex: null,
    // A base with a term is that of a restored cluster: a vote in that term may have been given.
    hardState: { term: position.term, votedFor: null },
  });
  const database = await createDatabase(temporary);
  try {
    await database.writeSynced([
      { type: "put", key: ownerKey, value: encodeOwner(owner) },
      { type: "put", key: baseKey, value: encodeFirstBase(base) },
      { type: "put", key: metaKey, value: meta },
    ]);
  } finally {
    await database.close();
  }
  for (const name of await readdir(temporary)) await syncFile(join(temporary, name));
  await syncDirectory(temporary);
  await rename(temporary, join(directory, databaseName));
  await syncDirectory(directory);
  await createMark(directory, owner.instance, firstBatch);
}

/** Throws damage when what is there is more than a formation leaves that died half-way: then it is the identity that is wrong. */
export async function assertHalfFormed(directory: string, identity: Identity): Promise<void> {
  const mark = await readMark(directory, identity.instance, true);
  const batches = Math.max(mark ?? 0, await newestBatch(join(directory, databaseName)));
  if (batches > firstBatch)
    throw damaged(identityFile, `it says that this node was never formed, and ${batches} batches were written`);
}

export async function removeHalfFormed(directory: string, identity: Identity): Promise<void> {
  await assertHalfFormed(directory, identity);
  const path = join(directory, databaseName);
  const temporary = join(directory, temporaryName);
  await rm(join(directory, markFile), { force: true });
  await rm(temporary, { recursive: true, force: true });
  if (!(await isThere(path))) return;
  // Renamed first: a database that is there is always a whole one.
  await rename(path, temporary);
  await syncDirectory(directory);
  await rm(temporary, { recursive: true, force: true });
}

async function newestBatch(path: string): Promise<number> {
  if (!(await isThere(path))) return 0;
  const files = await readDatabaseFiles({ path, name: databaseName, machineRestarted: true }, readRow);
  return recover(databaseName, mergedRows(files, readRow)).meta.batchNumber;
}
