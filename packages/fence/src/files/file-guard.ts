import { createHash } from "node:crypto";
import path from "node:path";

import { InvalidArgumentError } from "../errors.js";
import type { FenceSource } from "../fence.js";
import { isWellFormed } from "../fence.js";
import { Guard } from "../guard.js";
import { checkOptionNames } from "../options.js";
import { reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { VersionRegister } from "./version-register.js";

export interface FileGuardOptions extends ReportingOptions {
  /** Each resource gets a directory of its own in here. Only this guard may write there. */
  readonly directory: string;
}

/**
 * Guards one content per resource, the lock's name naming it. Every method with a lock refuses a token below the resource's highest
 * with StaleTokenError, having changed nothing, and leaves the resource at the token; an equal token is accepted again. Whatever was
 * acknowledged is on the disk.
 */
export interface FileGuard {
  /** Replaces the content. */
  write(lock: FenceSource, content: string | Uint8Array): Promise<void>;
  /** Replaces the content by what `change` makes of it. It is called again when another writer comes between. */
  update(
    lock: FenceSource,
    change: (current: Buffer | null) => string | Uint8Array | PromiseLike<string | Uint8Array>,
  ): Promise<Buffer>;
  /** Raises the register (which copies the content once for each new token) and resolves with the content. */
  read(lock: FenceSource): Promise<Buffer | null>;
  /** Removes the content; the token stays. */
  remove(lock: FenceSource): Promise<void>;
  /** The newest content, for whoever holds no lock and writes nothing that depends on it. */
  readNewest(resource: string): Promise<Buffer | null>;
}

/** @throws InvalidArgumentError naming the option. */
export function fileGuard(options: FileGuardOptions): FileGuard {
  checkOptionNames(options, "options", ["directory", ...reportingOptionNames]);
  const { directory, ...reporting } = options;
  if (typeof directory !== "string" || directory === "" || directory.includes("\0")) {
    throw new InvalidArgumentError("options.directory", "must be the path of a directory");
  }
  const root = path.resolve(directory);
  const register = new VersionRegister((resource) => path.join(root, folderName(resource)));
  const guard = new Guard(register, { name: "files", ...reporting });
  return {
    write: async (lock, content) => guard.write(lock, bytesOf(content, "content")),
    update: async (lock, change) => {
      if (typeof change !== "function") throw new InvalidArgumentError("change", "must be a function");
      return guard.update(lock, async (current) => bytesOf(await change(current), "change"));
    },
    read: (lock) => guard.read(lock),
    remove: (lock) => guard.remove(lock),
    readNewest: async (resource) => {
      if (typeof resource !== "string" || resource === "" || !isWellFormed(resource)) {
        throw new InvalidArgumentError("resource", "must be a well-formed string that isn't empty");
      }
      return (await register.read(resource))?.record.value ?? null;
    },
  };
}

/** A copy: what the caller does to its bytes afterwards is not part of the write. */
function bytesOf(content: unknown, argument: string): Buffer {
  if (typeof content === "string") return Buffer.from(content);
  if (content instanceof Uint8Array) return Buffer.from(content);
  throw new InvalidArgumentError(argument, "must be a string or a Uint8Array");
}

/** File systems allow 255 bytes to a name. */
const plainNameBytesMax = 200;

/**
 * The name as a file name, readable as far as can be. Only small letters, digits and "-" stay as they are: some file systems take "A"
 * for "a", and "." means something in all of them.
 */
function folderName(resource: string): string {
  const bytes = Buffer.from(resource);
  let name = "";
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    name += /[a-z0-9-]/.test(character) ? character : `_${byte.toString(16).padStart(2, "0")}`;
  }
  if (name.length <= plainNameBytesMax) return name;
  return `__${createHash("sha256").update(bytes).digest("hex")}`;
}
