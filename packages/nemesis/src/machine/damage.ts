/** Damage to the files of a node that is stopped: what disks, copies and people do. */
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Damage, DamageReport } from "./machine.js";

/** Enough to end within the last record, whose length is in front of it. */
const tornBytes = 10;

export function damageDirectory(directory: string, damage: Damage): DamageReport {
  switch (damage) {
    case "logBit":
      return flip(directory, biggest(directory, /\/\d{6}\.log$/), "a bit in the middle of the database's log flipped");
    case "tableBit":
      return flip(directory, biggest(directory, /\/\d{6}\.ldb$/), "a bit in the middle of a table flipped");
    case "currentMissing":
      return change(directory, biggest(directory, /\/CURRENT$/), "the name of the manifest removed", (file) =>
        rmSync(file),
      );
    case "manifestTorn":
      return change(
        directory,
        biggest(directory, /\/MANIFEST-\d+$/),
        `the last ${tornBytes} bytes of the manifest cut off`,
        tear,
      );
    case "directoryEmpty":
      return change(directory, directory, "everything removed", empty);
  }
}

function flip(directory: string, file: string | null, what: string): DamageReport {
  return change(directory, file, what, (path) => {
    const bytes = readFileSync(path);
    const middle = bytes.length >> 1;
    bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle);
    writeFileSync(path, bytes);
  });
}

function tear(file: string): void {
  truncateSync(file, Math.max(0, statSync(file).size - tornBytes));
}

/** The directory itself stays: a disk may be mounted there. */
function empty(directory: string): void {
  for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
}

function change(directory: string, file: string | null, what: string, inflict: (file: string) => void): DamageReport {
  if (file === null) return { file: null, what: "there is no such file with something in it" };
  inflict(file);
  return { file: relative(directory, file) || ".", what };
}

/** Where most of the records are; a lock's own database beside the node's holds little. An empty file can't be damaged. */
function biggest(directory: string, name: RegExp): string | null {
  const files = readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => name.test(file))
    .map((file) => ({ file, size: statSync(file).size }))
    .filter(({ size }) => size > 0);
  return files.sort((a, b) => b.size - a.size)[0]?.file ?? null;
}
