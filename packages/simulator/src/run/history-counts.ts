/** How often a run met what the log and the nodes can meet: entries, effects and outcomes by kind, installs, stalls, early deaths. */
import type { History, HistoryEvent } from "@holdfast/checker";

type Add = (name: string, by: number) => void;

export function countHistory({ events }: History, add: Add): void {
  for (const event of events) {
    switch (event.kind) {
      case "committed":
        countEntry(event, add);
        break;
      case "applied":
        countEffects(event, add);
        break;
      case "installed":
      case "stall":
      case "serving":
      case "deposed":
        add(`history: ${event.kind}`, 1);
        break;
      case "told":
        add(`told: ${event.outcome.kind}`, 1);
        break;
      default:
    }
  }
}

function countEntry({ entry }: Extract<HistoryEvent, { kind: "committed" }>, add: Add): void {
  add(entry.kind === "command" ? `entry: ${entry.command.kind}` : `entry: ${entry.kind}`, 1);
}

function countEffects({ effects }: Extract<HistoryEvent, { kind: "applied" }>, add: Add): void {
  for (const effect of effects ?? []) {
    if (effect.kind === "sessionEnded") add(`effect: session ended, ${effect.reason}`, 1);
    else if (effect.kind === "outcome") add(`effect: ${effect.outcome.kind}`, 1);
    else if (effect.kind === "rejected") add(`effect: rejected, ${effect.rejection.kind}`, 1);
    else if (effect.kind !== "changed") add(`effect: ${effect.kind}`, 1);
  }
}
