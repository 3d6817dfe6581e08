/**
 * Two sockets to each peer: what is long goes on one, so that heartbeats, votes and answers never wait behind it. Appends and
 * snapshot chunks keep their order among themselves, and so does everything else; between the lanes there is none, and the core
 * takes late messages as they come.
 */
import type { Message } from "@holdfast/raft";

export type Lane = "control" | "data";
export const lanes: readonly Lane[] = ["control", "data"];

export function laneFor(message: Message): Lane {
  return message.kind === "append" || message.kind === "snapshotChunk" ? "data" : "control";
}
