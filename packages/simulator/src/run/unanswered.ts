/** Keepalives that a leader has read and doesn't answer, though nothing is in its way. */
import type { HistoryEvent } from "@holdfast/checker";
import { probed } from "../node/host-access.js";
import type { SimulatedNode } from "../node/simulated-node.js";
import type { World } from "./world.js";

export interface ReadKeepalive {
  readonly number: number;
  readonly at: number;
}

/** Of sessions of clients that live, read by this leader in its term between two moments (virtual ms), one line each. */
export function unansweredKeepalives(world: World, leader: SimulatedNode, fromMs: number, untilMs: number): string[] {
  if (leader.host === null) return [];
  const { raft, applier } = probed(leader.host);
  const { events } = world.recorder;
  const listening = listeningSessions(events, new Set(world.clientIds()));
  const live = new Set<number>();
  for (const { id } of applier.machine.sessions()) live.add(id);
  const owed = owedAnswers(events, { node: leader.id, term: raft.term, fromMs, untilMs });
  return [...owed].flatMap(([session, { number, at }]) => {
    return live.has(session) && listening.has(session)
      ? [`keepalive ${number} of session ${session}, read at ${at.toFixed(2)}`]
      : [];
  });
}

/** Sessions whose library still hears an answer: its client lives (one of `clients`), and has not closed it, and its connection with it. */
export function listeningSessions(events: readonly HistoryEvent[], clients: ReadonlySet<string>): Set<number> {
  const opened = new Map<string, Set<number>>();
  for (const event of events) {
    if (event.kind === "sessionOpened" && clients.has(event.client)) {
      const sessions = opened.get(event.client);
      if (sessions === undefined) opened.set(event.client, new Set([event.session]));
      else sessions.add(event.session);
    } else if (event.kind === "call" && event.op.kind === "close") {
      opened.delete(event.client);
    }
  }
  return new Set([...opened.values()].flatMap((sessions) => [...sessions]));
}

/**
 * By session, the newest keepalive that `node` has read in `term` from one moment to another (virtual ms), where neither it nor a later one
 * was ever acknowledged. An acknowledgement speaks for all before its own, and those of a connection that its client has given up may be
 * read long after it.
 */
export function owedAnswers(
  events: readonly HistoryEvent[],
  read: { readonly node: string; readonly term: number; readonly fromMs: number; readonly untilMs: number },
): Map<number, ReadKeepalive> {
  const { node, term, fromMs, untilMs } = read;
  const owed = new Map<number, ReadKeepalive>();
  const acknowledged = new Map<number, number>();
  for (const event of events) {
    if (event.kind === "keepaliveAcknowledged") {
      acknowledged.set(event.session, Math.max(event.number, acknowledged.get(event.session) ?? event.number));
    } else if (event.kind === "keepaliveReceived" && event.node === node && event.term === term) {
      const newest = owed.get(event.session)?.number ?? event.number;
      if (event.at >= fromMs && event.at <= untilMs && event.number >= newest) owed.set(event.session, event);
    }
  }
  for (const [session, { number }] of owed) if (number <= (acknowledged.get(session) ?? -1)) owed.delete(session);
  return owed;
}
