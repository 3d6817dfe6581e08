/** The picture of a run: lanes of processes over time, the faults above them. */
import type { HistoryEvent } from "@holdfast/checker";
import type { RunSummary } from "../run/summary.js";
import { withoutCrowding } from "./crowding.js";
import type { Bar, Lane, Mark } from "./lane.js";
import { lanesOf } from "./lanes.js";
import { element, number, textElement } from "./markup.js";
import { bandColor, barColors, holdColors, legendItems, markColors } from "./palette.js";

export type PicturedRun = Pick<RunSummary, "scenario" | "about" | "nodes" | "workers" | "startedAt" | "endedAt"> & {
  readonly faults: readonly Pick<RunSummary["faults"][number], "text" | "from" | "to">[];
};

const width = 1_400;
const nameWidth = 70;
const rightMargin = 20;
const plotWidth = width - nameWidth - rightMargin;
const headHeight = 30;
const lineHeight = 15;
/** Of what the scenario is about. */
const aboutLinesMax = 3;
const faultHeight = 18;
const laneHeight = 30;
const barHeight = 18;
const axisHeight = 26;
/** A hold may be shorter than any picture shows; narrower bars can't be told apart. */
const barWidthMin = 1.5;
/** Of a letter of the labels. */
const letterWidth = 6;
/** What comes after the load: the drain, of which the beginning is enough. */
const tailMs = 2_000;
/** What comes before it. */
const headMs = 1_000;

/** Places of the picture. */
interface Frame {
  readonly from: number;
  readonly to: number;
  readonly zero: number;
  /** Of the rows of faults, ... */
  readonly head: number;
  /** ... of the lanes. */
  readonly top: number;
  readonly bottom: number;
  readonly x: (at: number) => number;
}

/** SVG. The same events give the same text. */
export function timelineSvg(run: PicturedRun, events: readonly HistoryEvent[]): string {
  const from = run.startedAt - headMs;
  const lastAt = events.at(-1)?.at ?? run.endedAt;
  const to = Math.max(Math.min(lastAt, run.endedAt + tailMs), run.endedAt, run.startedAt + 1);
  const lanes = lanesOf(run, events, to);
  const about = wrapped(run.about, plotWidth).slice(0, aboutLinesMax);
  const head = headHeight + about.length * lineHeight;
  const x = (at: number): number => nameWidth + (plotWidth * (Math.min(Math.max(at, from), to) - from)) / (to - from);
  const rows = faultRows(run.faults, x);
  const top = head + (Math.max(-1, ...rows) + 1) * faultHeight + 6;
  const bottom = top + lanes.length * laneHeight;
  const frame: Frame = { from, to, zero: run.startedAt, head, top, bottom, x };
  const key = legend(bottom + axisHeight + 18);
  const height = bottom + axisHeight + 18 + key.rows * lineHeight;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    element("rect", { x: 0, y: 0, width, height, fill: "#ffffff" }),
    textElement(run.scenario, { x: nameWidth, y: 20, "font-size": 16, "font-weight": "bold" }),
    ...about.map((line, at) => textElement(line, { x: nameWidth, y: 38 + at * lineHeight, fill: "#555555" })),
    ...axis(frame),
    ...run.faults.flatMap((fault, at) => faultLines(fault, rows[at] ?? 0, frame)),
    ...lanes.flatMap((lane, at) => laneLines(lane, top + at * laneHeight, frame)),
    ...key.lines,
    "</svg>",
    "",
  ].join("\n");
}

/** The least step with no more than twenty of them. */
function secondsStep(seconds: number): number {
  return [1, 2, 5, 10, 20, 30, 60, 120, 300, 600].find((step) => seconds / step <= 20) ?? 1_800;
}

function axis({ to, zero, top, bottom, x }: Frame): string[] {
  const step = secondsStep((to - zero) / 1_000);
  const lines: string[] = [];
  for (let second = 0; zero + second * 1_000 <= to; second += step) {
    const at = number(x(zero + second * 1_000));
    lines.push(element("line", { x1: at, y1: top, x2: at, y2: bottom, stroke: "#e4e4e4" }));
    lines.push(textElement(`${second} s`, { x: at, y: bottom + 16, "text-anchor": "middle", fill: "#555555" }));
  }
  return lines;
}

/** The first row in which there is room for its words; numbered from 0. */
function faultRows(faults: PicturedRun["faults"], x: Frame["x"]): readonly number[] {
  const ends: number[] = [];
  return faults.map(({ from, to, text }) => {
    const left = x(from);
    const free = ends.findIndex((end) => end + letterWidth <= left);
    const row = free === -1 ? ends.length : free;
    ends[row] = Math.max(x(to ?? from), left + textWidth(text));
    return row;
  });
}

/** Its words in a row, and a band through all lanes while it lasts. */
function faultLines(fault: PicturedRun["faults"][number], row: number, frame: Frame): string[] {
  const left = frame.x(fault.from);
  const right = Math.max(frame.x(fault.to ?? fault.from), left + 2);
  const y = frame.head + row * faultHeight;
  const title = `${fault.text}: ${seconds(fault.from - frame.zero)}${fault.to === null ? "" : ` to ${seconds(fault.to - frame.zero)}`}`;
  const widthOf = number(right - left);
  const height = number(frame.bottom - y - faultHeight);
  const room = width - rightMargin - left;
  const isRight = textWidth(fault.text) > room;
  return [
    element("rect", { x: number(left), y: y + faultHeight - 4, width: widthOf, height: 4, fill: bandColor, title }),
    element("rect", {
      x: number(left),
      y: y + faultHeight,
      width: widthOf,
      height,
      fill: bandColor,
      "fill-opacity": 0.09,
    }),
    textElement(fault.text, {
      x: number(isRight ? width - rightMargin : left),
      y: y + 11,
      "font-size": 11,
      fill: "#7a1f1f",
      ...(isRight ? { "text-anchor": "end" } : {}),
    }),
  ];
}

function laneLines(lane: Lane, y: number, frame: Frame): string[] {
  const finest = ((frame.to - frame.from) * barWidthMin) / plotWidth;
  const middle = y + laneHeight / 2;
  const bars = withoutCrowding(
    lane.bars.filter(({ to }) => to >= frame.from),
    finest,
  );
  // What a process was lies below what it did.
  const order = [...bars.filter(({ style }) => style === "up"), ...bars.filter(({ style }) => style !== "up")];
  return [
    element("line", { x1: nameWidth, y1: y, x2: width - rightMargin, y2: y, stroke: "#eeeeee" }),
    textElement(lane.name, { x: nameWidth - 8, y: middle + 4, "text-anchor": "end" }),
    ...order.flatMap((bar) => barLines(bar, middle, frame)),
    ...lane.marks.filter(({ at }) => at >= frame.from).map((mark) => markLine(mark, middle, frame)),
  ];
}

function barLines(bar: Bar, middle: number, { x }: Frame): string[] {
  const left = x(bar.from);
  const wide = Math.max(x(bar.to) - left, 0.8);
  const { height, opacity } = barColors[bar.style];
  const fill = bar.style === "hold" ? (holdColors[bar.hue % holdColors.length] ?? "") : barColors[bar.style].fill;
  const tall = barHeight * height;
  const box = { x: number(left), y: number(middle - tall / 2), width: number(wide), height: number(tall) };
  const rectangle = element("rect", { ...box, fill, "fill-opacity": opacity, title: bar.title });
  if (bar.label === "" || textWidth(bar.label) > wide - 4) return [rectangle];
  const place = { x: number(left + wide / 2), y: number(middle + 4), "font-size": 11, "text-anchor": "middle" };
  return [rectangle, textElement(bar.label, { ...place, fill: "#ffffff", "pointer-events": "none" })];
}

function markLine({ style, at, title }: Mark, middle: number, { x }: Frame): string {
  const here = x(at);
  const to = (dx: number, dy: number): string => `${number(here + dx)} ${number(middle + dy)}`;
  const shapes: Readonly<Record<Mark["style"], string>> = {
    killed: `M${to(-5, -9)}L${to(5, 9)}M${to(5, -9)}L${to(-5, 9)}`,
    refused: `M${to(0, -13)}L${to(0, 13)}M${to(-4, -13)}L${to(4, -13)}`,
    lost: `M${to(-5, -12)}L${to(5, -12)}L${to(0, -4)}Z`,
    rate: `M${to(0, 8)}L${to(5, 13)}L${to(-5, 13)}Z`,
  };
  return element("path", { d: shapes[style], stroke: markColors[style], "stroke-width": 2, fill: "none", title });
}

function legend(top: number): { readonly lines: readonly string[]; readonly rows: number } {
  let left = nameWidth;
  let y = top;
  const lines = legendItems.flatMap(({ text, color, opacity }) => {
    const wide = 19 + Math.ceil(textWidth(text)) + 14;
    if (left + wide > width) {
      left = nameWidth;
      y += lineHeight;
    }
    const box = { x: left, y: y - 10, width: 14, height: 11, fill: color, "fill-opacity": opacity };
    const item = [element("rect", box), textElement(text, { x: left + 19, y, "font-size": 11, fill: "#444444" })];
    left += wide;
    return item;
  });
  return { lines, rows: (y - top) / lineHeight + 1 };
}

/** At spaces, into lines of this width. */
function wrapped(text: string, room: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    const longer = last === undefined ? word : `${last} ${word}`;
    if (last === undefined || textWidth(longer) > room) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

function textWidth(text: string): number {
  return text.length * letterWidth;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}
