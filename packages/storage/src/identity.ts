/**
 * The `identity` file: who this directory is. One line of JSON for people to read, one line with its crc32c. These two lines
 * and the field `formatVersion` stay as they are in every later format, so that an older release can tell a newer file from
 * a damaged one.
 */
import { crc32c } from "@holdfast/wire";
import { join } from "node:path";
import { readFileIfThere, replaceFile } from "./files.js";
import { FormatError, StorageError, inFile } from "./storage-error.js";
import type { Identity } from "./types.js";

export const identityFormatVersion = 1;
export const identityFile = "identity";

/** Stands for the instance of a directory whose identity was lost: no configuration names it. */
export const unknownInstance = "unknown";

export function encodeIdentity(identity: Identity, foundInstead: string | null): Buffer {
  // The damaged file's text is kept inside the new one: it may tell somebody what happened.
  const line = Buffer.from(JSON.stringify(foundInstead === null ? identity : { ...identity, foundInstead }));
  return Buffer.concat([line, Buffer.from(`\ncrc32c=${checksumText(line)}\n`)]);
}

/** Throws FormatError for damage and StorageError("newer_format"). */
function decodeIdentity(bytes: Buffer): Identity {
  const newline = bytes.indexOf(0x0a);
  if (newline < 0) throw new FormatError("it has no checksum");
  const line = bytes.subarray(0, newline);
  if (bytes.subarray(newline).toString("latin1") !== `\ncrc32c=${checksumText(line)}\n`)
    throw new FormatError("it has a wrong checksum");
  let fields: unknown;
  try {
    fields = JSON.parse(line.toString("utf8"));
  } catch {
    throw new FormatError("it is no JSON");
  }
  return identityFrom(fields);
}

function identityFrom(fields: unknown): Identity {
  if (typeof fields !== "object" || fields === null) throw new FormatError("it is no object");
  const { formatVersion, nodeId, instance, clusterId, boot, machineBootId, quarantine } = fields as Record<
    keyof Identity,
    unknown
  >;
  if (typeof formatVersion !== "number") throw new FormatError("it has no format version");
  if (formatVersion > identityFormatVersion) {
    throw new StorageError(
      "newer_format",
      `${identityFile} has format ${formatVersion}, and this release knows ${identityFormatVersion} at most`,
    );
  }
  const isText = (value: unknown): value is string => typeof value === "string" && value.length > 0;
  const isTextOrNull = (value: unknown): value is string | null => value === null || isText(value);
  if (!isText(nodeId) || !isText(instance) || !isText(machineBootId)) throw new FormatError("a field is missing");
  if (!isTextOrNull(clusterId) || !isTextOrNull(quarantine)) throw new FormatError("a field is missing");
  if (typeof boot !== "number" || !Number.isSafeInteger(boot)) throw new FormatError("it has no boot counter");
  return { formatVersion, nodeId, instance, clusterId, boot, machineBootId, quarantine };
}

function checksumText(line: Uint8Array): string {
  return crc32c(line).toString(16).padStart(8, "0");
}

/** Null when there is none. Throws StorageError("damaged") or ("newer_format"). */
export async function readIdentity(directory: string): Promise<Identity | null> {
  const bytes = await readFileIfThere(join(directory, identityFile));
  return bytes === null ? null : inFile(identityFile, () => decodeIdentity(bytes));
}

/** Durable when it resolves. */
export async function writeIdentity(directory: string, identity: Identity): Promise<void> {
  await replaceFile(join(directory, identityFile), encodeIdentity(identity, null));
}

const foundBytesMax = 4_096;

/** Writes an identity where there is none, or none that can be read, for the sake of its quarantine. */
export async function writeIdentityInstead(directory: string, identity: Identity): Promise<void> {
  const path = join(directory, identityFile);
  const bytes = await readFileIfThere(path);
  const found = bytes === null ? null : bytes.subarray(0, foundBytesMax).toString("latin1");
  await replaceFile(path, encodeIdentity(identity, found));
}
