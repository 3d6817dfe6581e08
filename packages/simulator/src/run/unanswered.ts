/** Keepalives that a leader has read and doesn't answer, though nothing is in its way. */
import { probed } from "../node/host-access.js";
import type { SimulatedNode } from "../node/simulated-node.js";
import type { World } from "./world.js";

/**
 * Of sessions of clients that live, read by this leader in its term between two moments (virtual ms): those of which neither they nor later ones were
 * acknowledged until now, one line each.
 */
export function unansweredKeepalives(world: World, leader: SimulatedNode, fromMs: number, untilMs: number): string[] {
  if (leader.host === null) return [];
  const { raft, applier } = probed(leader.host);
  const waiting = new Map<number, { readonly number: number; readonly at: number }>();
  const { events } = world.recorder;
  // Who died right after it has closed the connection that the answer was for.
  const clients = new Set(world.clientIds());
  const owners = new Set(
    events.flatMap((event) => (event.kind === "sessionOpened" && clients.has(event.client) ? [event.session] : [])),
  );
  const first = events.findLastIndex(({ at }) => at < fromMs) + 1;
  for (const event of events.slice(first)) {
    if (event.kind === "keepaliveReceived" && event.at <= untilMs) {
      if (event.node === leader.id && event.term === raft.term) waiting.set(event.session, event);
    } else if (event.kind === "keepaliveAcknowledged") {
      const { number } = waiting.get(event.session) ?? { number: Number.POSITIVE_INFINITY };
      if (event.number >= number) waiting.delete(event.session);
    }
  }
  const live = new Set<number>();
  for (const { id } of applier.machine.sessions()) live.add(id);
  return [...waiting].flatMap(([session, { number, at }]) => {
    return live.has(session) && owners.has(session)
      ? [`keepalive ${number} of session ${session}, read at ${at.toFixed(2)}`]
      : [];
  });
}
