/** Names of resources as names of files, directories and objects. */
import { createHash } from "node:crypto";

/** File systems allow 255 bytes to a name. */
const plainNameBytesMax = 200;

/**
 * The name, readable as far as can be. Only small letters, digits and "-" stay as they are: some file systems take "A" for "a", and
 * "." and "/" mean something in all of them. An underscore stands before two hex digits, or begins a name of two.
 */
export function plainName(resource: string): string {
  const bytes = Buffer.from(resource);
  let name = "";
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    name += /[a-z0-9-]/.test(character) ? character : `_${byte.toString(16).padStart(2, "0")}`;
  }
  if (name.length <= plainNameBytesMax) return name;
  return `__${createHash("sha256").update(bytes).digest("hex")}`;
}
