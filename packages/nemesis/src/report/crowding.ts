/** Thousands of short holds don't fit into a picture: those that would be drawn over one another are drawn as one. */
import type { Bar } from "./lane.js";

/** `finest`: the least time that the picture can show. Bars of one style keep their order; long ones stay as they are. */
export function withoutCrowding(bars: readonly Bar[], finest: number): readonly Bar[] {
  const sorted = [...bars].sort((a, b) => a.from - b.from || a.to - b.to);
  const shown: Bar[] = [];
  const crowds = new Map<string, { first: Bar; to: number; count: number }>();
  const close = (style: string): void => {
    const crowd = crowds.get(style);
    if (crowd === undefined) return;
    crowds.delete(style);
    const { first, to, count } = crowd;
    shown.push(
      count === 1 ? first : { ...first, to, label: "", title: `${first.title}, and ${count - 1} more until here` },
    );
  };
  for (const bar of sorted) {
    const crowd = crowds.get(bar.style);
    const isShort = bar.to - bar.from < finest;
    if (!isShort || (crowd !== undefined && bar.from - crowd.to >= finest)) close(bar.style);
    if (!isShort) {
      shown.push(bar);
      continue;
    }
    const open = crowds.get(bar.style);
    if (open === undefined) crowds.set(bar.style, { first: bar, to: bar.to, count: 1 });
    else crowds.set(bar.style, { first: open.first, to: Math.max(open.to, bar.to), count: open.count + 1 });
  }
  for (const style of [...crowds.keys()]) close(style);
  return shown.sort((a, b) => a.from - b.from || a.to - b.to);
}
