/**
 * Who gave its word that a keepalive had renewed a session. The client sees the node on whose socket the word came; the term is the newest in
 * which that node is known to have come to lead by then, or soon after, for its log is read later than it is written: a rule that asks whether
 * the leader was an old one never alarms without reason.
 */
import type { HistoryEvent } from "@holdfast/checker";
import type { Report } from "../worker/protocol.js";

export type AcknowledgedReport = Extract<Report, { readonly kind: "acknowledgedBy" }>;

/** A line of a node's log has been read by then, on a busy machine too. */
const readWithinMs = 2_000;

/** `events`: with all of the kind "leader". Nothing of a node that never led. */
export function acknowledgements(
  reports: readonly AcknowledgedReport[],
  events: readonly HistoryEvent[],
): readonly HistoryEvent[] {
  const elections = events.filter((event) => event.kind === "leader");
  return reports.flatMap(({ at, node, session, number }): HistoryEvent[] => {
    const own = elections.filter((event) => event.node === node && event.at <= at + readWithinMs);
    if (own.length === 0) return [];
    const term = Math.max(...own.map((event) => event.term));
    return [{ at, kind: "keepaliveAcknowledged", node, term, session, number }];
  });
}
