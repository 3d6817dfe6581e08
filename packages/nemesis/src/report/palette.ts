/** Colours that can be told apart without red and green, too. */
import type { BarStyle, MarkStyle } from "./lane.js";

export const bandColor = "#c0392b";

/** One for each lock, in turn. Dark enough for white letters. */
export const holdColors: readonly string[] = ["#1f5fa8", "#0f7f7a", "#5b4bb5", "#3d6b1f", "#8a5a00", "#a03a6e"];

interface BarColor {
  readonly fill: string;
  readonly opacity: number;
  /** Share of a bar's full height. */
  readonly height: number;
}

export const barColors: Readonly<Record<BarStyle, BarColor>> = {
  up: { fill: "#9fb3c8", opacity: 0.45, height: 0.5 },
  leads: { fill: "#e0a030", opacity: 0.6, height: 1 },
  serves: { fill: "#b86e00", opacity: 1, height: 1 },
  paused: { fill: "#222222", opacity: 0.35, height: 1.4 },
  hold: { fill: "#1f5fa8", opacity: 1, height: 1 },
  jeopardy: { fill: "#e07b00", opacity: 1, height: 1 },
};

export const markColors: Readonly<Record<MarkStyle, string>> = {
  killed: "#000000",
  refused: "#d0021b",
  lost: "#8e24aa",
  rate: "#555555",
};

interface LegendItem {
  readonly text: string;
  readonly color: string;
  readonly opacity: number;
}

export const legendItems: readonly LegendItem[] = [
  { text: "node is up", color: barColors.up.fill, opacity: barColors.up.opacity },
  { text: "elected", color: barColors.leads.fill, opacity: barColors.leads.opacity },
  { text: "serves as leader", color: barColors.serves.fill, opacity: 1 },
  { text: "stands still", color: barColors.paused.fill, opacity: barColors.paused.opacity },
  { text: "holds a lock (its colour; the token)", color: barColors.hold.fill, opacity: 1 },
  { text: "in jeopardy", color: barColors.jeopardy.fill, opacity: 1 },
  { text: "lock lost (triangle)", color: markColors.lost, opacity: 1 },
  { text: "stale write refused (T)", color: markColors.refused, opacity: 1 },
  { text: "killed or ended (cross)", color: markColors.killed, opacity: 1 },
  { text: "fault", color: bandColor, opacity: 0.5 },
];
