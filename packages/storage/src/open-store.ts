import { join } from "node:path";
import type { Restored } from "@holdfast/raft";
import { openDatabase } from "./database.js";
import type { Database } from "./database.js";
import { cutFile, readFileIfThere, syncDirectory } from "./files.js";
import { LevelStore } from "./level-store.js";
import { mergedRows, readDatabaseFiles } from "./leveldb/database-files.js";
import type { DatabaseFiles, Tail } from "./leveldb/database-files.js";
import { createMark, markFile, openMark, readMark } from "./mark.js";
import { watchNewNames } from "./new-names.js";
import { checkAgainst, readRow, recover } from "./recovery.js";
import type { ReadRow, ReadRows, Recovered } from "./recovery.js";
import { checksumOf, decodeMeta, metaKey, unseal } from "./rows.js";
import type { Owner } from "./rows.js";
import { FormatError, StorageError, codeOf, damaged, inFile, rootOf, textOf } from "./storage-error.js";
import type { Store, StorageLogger } from "./types.js";

export const databaseName = "db";

interface StoreOptions {
  /** The data directory. */
  readonly directory: string;
  readonly owner: Owner;
  /** The machine has been started anew since this directory was last written to. */
  readonly machineRestarted: boolean;
}

export interface Verified {
  readonly recovered: Recovered;
  readonly rows: ReadRows;
  readonly tails: readonly Tail[];
}

/**
 * Reads and checks everything, and changes nothing. Throws StorageError("damaged") or ("newer_format"). `keepRow`: what the rows are to
 * hold; readRow or more.
 */
export async function verifyDatabase(options: StoreOptions, keepRow: typeof readRow = readRow): Promise<Verified> {
  const { directory, owner, machineRestarted } = options;
  const mark = await readMark(directory, owner.instance, machineRestarted);
  if (mark === null) throw damaged(markFile, "the file is missing");
  const path = join(directory, databaseName);
  const files = await readDatabaseFiles({ path, name: databaseName, machineRestarted }, keepRow);
  inFile(databaseName, () => checkBatchNumbers(files));
  const rows = mergedRows(files, keepRow);
  const recovered = recover(databaseName, rows);
  checkAgainst(databaseName, recovered, { ...owner, mark });
  await checkInfoLog(path, "LOG.old");
  await checkInfoLog(path, "LOG");
  return { recovered, rows, tails: files.tails };
}

/** Every batch in the logs has a meta row, and their numbers follow one another and the number in the tables. */
function checkBatchNumbers(files: DatabaseFiles<ReadRow>): void {
  const inTables = files.inTables.get(metaKey.toString("latin1"))?.row?.value ?? null;
  let number = inTables === null ? 0 : decodeMeta(inTables).batchNumber;
  for (const batch of files.batches) {
    const [meta, another] = batch.operations.filter((operation) => operation.key.equals(metaKey));
    if (meta === undefined || meta.value === null || another !== undefined)
      throw new FormatError("a batch in its log is not of this program");
    const found = decodeMeta(meta.value).batchNumber;
    if (found !== number + 1)
      throw new FormatError(`batch ${number + 1} is missing in its log: batch ${found} comes next`);
    number = found;
  }
}

/** What LevelDB writes when it leaves something out. Nothing is left to leave out for a LevelDB that we opened. */
const complaint = /corruption|dropping|ignoring error/i;

async function checkInfoLog(path: string, name: string): Promise<void> {
  const text = (await readFileIfThere(join(path, name)))?.toString("latin1") ?? "";
  const line = text.split("\n").find((candidate) => complaint.test(candidate));
  if (line !== undefined)
    throw damaged(`${databaseName}/${name}`, `LevelDB wrote ${JSON.stringify(line.slice(0, 300))}`);
}

interface StoreParts {
  readonly quarantine: (reason: string) => Promise<void>;
  readonly logger: StorageLogger;
  /**
   * Called when the database has been opened and found sound, before the first write, and when nothing torn is left: were the
   * machine's new boot id on disk before that, a kill in between would make the torn end of the last boot look like damage.
   */
  readonly onSound: () => Promise<void>;
  readonly onFirstWrite: () => void;
}

export async function openStore(
  options: StoreOptions,
  parts: StoreParts,
): Promise<{ store: Store; restored: Restored }> {
  const { directory, owner } = options;
  const { recovered, rows, tails } = await verifyDatabase(options);
  for (const { file, end, found } of tails) {
    parts.logger.warn({ file, end }, `the last write was cut off and is dropped: ${found}`);
    await cutFile(join(directory, file), end);
  }
  const path = join(directory, databaseName);
  const database = await openVerified(path);
  const opened: { close(): Promise<void> }[] = [database];
  try {
    await checkInfoLog(path, "LOG");
    await checkShownRows(database, rows);
    await syncDirectory(path);
    await createMark(directory, owner.instance, recovered.meta.batchNumber);
    await parts.onSound();
    const mark = await openMark(directory, owner.instance);
    opened.push(mark);
    const newNames = await watchNewNames(path);
    opened.push(newNames);
    const { quarantine, onFirstWrite } = parts;
    const store = new LevelStore(recovered, { database, mark, newNames, quarantine, onFirstWrite });
    await store.clean(recovered.garbage);
    return { store, restored: recovered.restored };
  } catch (error) {
    for (const part of opened) await part.close();
    throw error;
  }
}

async function openVerified(path: string): Promise<Database> {
  try {
    return await openDatabase(path);
  } catch (error) {
    const root = rootOf(error);
    if (codeOf(root) === "LEVEL_LOCKED")
      throw new StorageError("locked", `${databaseName} is in use by another program`, error);
    if (codeOf(root) === "LEVEL_CORRUPTION") throw damaged(databaseName, textOf(root), error);
    throw error;
  }
}

/** LevelDB must show the very rows that its files were found to hold: it may have been unable to open one of them. */
async function checkShownRows(database: Database, expected: ReadRows): Promise<void> {
  let count = 0;
  for await (const [key, value] of database.rows()) {
    const row = expected.get(key.toString("latin1"));
    inFile(databaseName, () => {
      unseal(key, value);
      if (row?.checksum !== checksumOf(value))
        throw new FormatError(`LevelDB shows another row than its files hold: ${key.toString("hex")}`);
    });
    count++;
  }
  if (count !== expected.size) throw damaged(databaseName, `LevelDB shows ${count} of its ${expected.size} rows`);
}
