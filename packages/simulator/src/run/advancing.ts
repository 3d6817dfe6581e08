/** Whether a node that is behind gets what it lacks: slow is no fault, standing still is. */
import type { PeerStatus } from "@holdfast/raft";

/** In ten election timeouts a learner gets so many entries at least, even where an append takes one or two, or so many pieces of a snapshot. */
const fetchedMin = 50;
const piecesMin = 10;

export type Stand = Pick<PeerStatus, "behindEntries" | "snapshot">;

/** Whether it has got what it must in that time: entries, or pieces of a snapshot, which only its last one turns into entries. */
export function hasAdvanced(before: Stand | undefined, now: Stand | undefined): boolean {
  if (now === undefined) return false;
  if (before === undefined || now.behindEntries + fetchedMin <= before.behindEntries) return true;
  if (now.snapshot === null) return false;
  return before.snapshot?.index !== now.snapshot.index || now.snapshot.chunk >= before.snapshot.chunk + piecesMin;
}

export function standOf(peer: Stand | undefined): string {
  if (peer === undefined) return "unknown to its leader";
  const { behindEntries, snapshot } = peer;
  return `${behindEntries} entries behind${snapshot === null ? "" : ` (piece ${snapshot.chunk} of snapshot ${snapshot.index})`}`;
}
