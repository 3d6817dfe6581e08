/**
 * The `mark` file: the number of the last batch that was finished, so that a database which lost its end, or was put back from a
 * copy, is found out. Two slots are written in turn, without sync, after the batch is synced and before anything of it is told.
 *
 * What each state at a start means:
 * - After a kill the mark is what was last written: the page cache outlives the process. A slot lies inside one sector and one page, so
 *   no kill leaves half of it: in the same boot of the machine an invalid slot is damage.
 * - After a power loss the mark may be old by what the kernel had not yet written (some 30 s). An old mark is harmless: it demands less.
 *   It is synced whenever LevelDB begins a new log, so it never falls behind by more than one log file.
 * - A write under way at the power loss may tear one slot; the other one stands, one batch older. Both slots lie 4 kB apart, so
 *   no single write of a disk touches both, and both are written and synced at each start: two invalid slots are no torn write, and are
 *   damage in any boot.
 */
import { crc32c } from "@holdfast/wire";
import { close, fdatasync, open as openFile, write } from "node:fs";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { readFileIfThere, syncDirectory } from "./files.js";
import { damaged } from "./storage-error.js";

export const markFile = "mark";

const slotSpacingBytes = 4_096;
const slotCount = 2;
const magic = 0x48466d6b;
const slotBytes = 20;

function encodeSlot(instance: string, batchNumber: number): Buffer {
  const slot = Buffer.alloc(slotBytes);
  slot.writeUInt32BE(magic, 0);
  slot.writeUInt32BE(crc32c(Buffer.from(instance)), 4);
  slot.writeUInt32BE(Math.floor(batchNumber / 2 ** 32), 8);
  slot.writeUInt32BE(batchNumber >>> 0, 12);
  slot.writeUInt32BE(crc32c(slot.subarray(0, 16)), 16);
  return slot;
}

/** The batch number in a slot, or null when the slot is invalid. */
function decodeSlot(slot: Buffer, instance: string): number | null {
  if (slot.length < slotBytes || slot.readUInt32BE(0) !== magic) return null;
  if (slot.readUInt32BE(16) !== crc32c(slot.subarray(0, 16))) return null;
  if (slot.readUInt32BE(4) !== crc32c(Buffer.from(instance)))
    throw damaged(markFile, "it belongs to another directory");
  return slot.readUInt32BE(8) * 2 ** 32 + slot.readUInt32BE(12);
}

/** Null when there is no such file. Throws StorageError("damaged"). */
export async function readMark(directory: string, instance: string, machineRestarted: boolean): Promise<number | null> {
  const bytes = await readFileIfThere(join(directory, markFile));
  if (bytes === null) return null;
  let newest: number | null = null;
  let invalid = 0;
  for (let slot = 0; slot < slotCount; slot++) {
    const at = slot * slotSpacingBytes;
    const number = decodeSlot(bytes.subarray(at, at + slotBytes), instance);
    if (number === null) invalid++;
    else newest = Math.max(newest ?? 0, number);
  }
  if (newest === null) throw damaged(markFile, "both of its slots are invalid");
  if (invalid > 0 && !machineRestarted)
    throw damaged(markFile, "a slot is invalid, and the machine has not been restarted since");
  return newest;
}

/** Makes the file with both slots at `batchNumber`, durable when it resolves. */
export async function createMark(directory: string, instance: string, batchNumber: number): Promise<void> {
  const path = join(directory, markFile);
  const handle = await open(`${path}.tmp`, "w", 0o600);
  try {
    await handle.writeFile(Buffer.alloc(slotCount * slotSpacingBytes));
    for (let slot = 0; slot < slotCount; slot++) {
      await handle.write(encodeSlot(instance, batchNumber), 0, slotBytes, slot * slotSpacingBytes);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${path}.tmp`, path);
  await syncDirectory(directory);
}

/** The open file of a running node. */
export interface Mark {
  /** Resolves when the kernel has it; a power loss may still take it. */
  write(batchNumber: number): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

// The plain calls with callbacks: a third of the price of a FileHandle's, and this is on the way of every batch. Not the synchronous
// ones: a write to a file can wait for a file system that is busy with a slow sync, and the loop must see that the disk stalls.
const openDescriptor = promisify(openFile);
const closeDescriptor = promisify(close);
const syncDescriptor = promisify(fdatasync);

export async function openMark(directory: string, instance: string): Promise<Mark> {
  const descriptor = await openDescriptor(join(directory, markFile), "r+");
  return {
    write: (batchNumber) => {
      const slot = encodeSlot(instance, batchNumber);
      const at = (batchNumber % slotCount) * slotSpacingBytes;
      return new Promise((resolve, reject) => {
        write(descriptor, slot, 0, slotBytes, at, (error, written) => {
          if (error !== null) reject(error);
          else if (written !== slotBytes) reject(new Error(`${written} of ${slotBytes} bytes written`));
          else resolve();
        });
      });
    },
    sync: () => syncDescriptor(descriptor),
    close: () => closeDescriptor(descriptor),
  };
}
