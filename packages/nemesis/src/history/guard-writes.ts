/**
 * Guarded operations in the order in which the store took them. Those that took effect stand in its list, in order; a refused one may stand
 * where its refusal came back, for what refused it was there before. One without an answer is settled by the list.
 */
import type { HistoryEvent } from "@holdfast/checker";
import type { Report } from "../worker/protocol.js";

export type GuardedReport = Extract<Report, { readonly kind: "guarded" }> & { readonly client: string };

export function guardWrites(reports: readonly GuardedReport[], accepted: ReadonlyMap<string, number>): HistoryEvent[] {
  const taken = reports
    .flatMap((report) => {
      const seq = accepted.get(report.op);
      return seq === undefined ? [] : [{ report, seq }];
    })
    .sort((a, b) => a.seq - b.seq);
  let last = Number.NEGATIVE_INFINITY;
  const events: HistoryEvent[] = taken.map(({ report }) => {
    // After it was sent, and after the one before it.
    last = Math.max(last, report.fromMs);
    return eventOf(report, last, true);
  });
  for (const report of reports) {
    if (!accepted.has(report.op) && report.result === "refused") events.push(eventOf(report, report.at, false));
  }
  return events;
}

function eventOf({ client, name, token }: GuardedReport, at: number, isAccepted: boolean): HistoryEvent {
  return { at, kind: "guardWrite", client, resource: name, name, slot: null, token, accepted: isAccepted };
}
