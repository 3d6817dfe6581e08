/** What rots on a disk. All of it is found at the next start, for the real store reads and checks everything before LevelDB opens it. */

/**
 * - flip: a bit in a log or a table of the database
 * - hole: a run of batches is gone from the log, with later ones behind it
 * - file: a file of the database is lost or shorter (CURRENT, MANIFEST, a log, a table)
 * - chunk: a bit in a snapshot, which a running node notices too when it reads it
 * - mark: a bit in one slot of the mark, no damage after a power loss
 * - markFile: the mark is lost
 * - identity: a bit in the identity
 */
export type Rot = "flip" | "hole" | "file" | "chunk" | "mark" | "markFile" | "identity";

export const rotReasons: Readonly<Record<Rot, string>> = {
  flip: "db/000005.log is damaged: wrong checksum of the record at 0",
  hole: "db is damaged: batch 2 is missing in its log: batch 3 comes next",
  file: "db/CURRENT is damaged: the file is missing",
  chunk: "db is damaged: chunk 0 of the snapshot has a wrong checksum",
  mark: "mark is damaged: a slot is invalid, and the machine has not been restarted since",
  markFile: "mark is damaged: the file is missing",
  identity: "identity is damaged: it has a wrong checksum",
};
