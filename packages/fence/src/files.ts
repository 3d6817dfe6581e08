/** A guard for files in a directory: every write is a new file, and the newest whole one counts. For local file systems with hard links. */
export { fileGuard } from "./files/file-guard.js";
export type { FileGuard, FileGuardOptions } from "./files/file-guard.js";
