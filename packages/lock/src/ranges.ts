/**
 * Sets of request numbers as closed ranges, flat and rising: [from, to, from, to, ...], at least one number missing between two.
 * The gaps are open requests, so the lists are short.
 */
export type Ranges = number[];

export function rangesInclude(ranges: Ranges, number: number): boolean {
  const at = firstEndingFrom(ranges, number);
  return at < ranges.length && valueAt(ranges, at) <= number;
}

export function addToRanges(ranges: Ranges, number: number): void {
  const at = firstEndingFrom(ranges, number);
  if (at < ranges.length && valueAt(ranges, at) <= number) return;
  const joinsLeft = at > 0 && valueAt(ranges, at - 1) === number - 1;
  const joinsRight = at < ranges.length && valueAt(ranges, at) === number + 1;
  if (joinsLeft && joinsRight) ranges.splice(at - 1, 2);
  else if (joinsLeft) ranges[at - 1] = number;
  else if (joinsRight) ranges[at] = number;
  else ranges.splice(at, 0, number, number);
}

/** Removes all numbers below `floor`. Returns the lowest number from `floor` on that is not in the set, and removes those before it. */
export function raiseFloor(ranges: Ranges, floor: number): number {
  const at = firstEndingFrom(ranges, floor);
  if (at > 0) ranges.splice(0, at);
  if (ranges.length === 0 || valueAt(ranges, 0) > floor) return floor;
  const next = valueAt(ranges, 1) + 1;
  ranges.splice(0, 2);
  return next;
}

/** Adds the numbers of the lowest gap between two ranges that `mayClose`. Returns that gap, or null if there is none. */
export function closeLowestGap(
  ranges: Ranges,
  mayClose: (from: number, to: number) => boolean,
): { readonly from: number; readonly to: number } | null {
  for (let at = 1; at + 1 < ranges.length; at += 2) {
    const from = valueAt(ranges, at) + 1;
    const to = valueAt(ranges, at + 1) - 1;
    if (!mayClose(from, to)) continue;
    ranges.splice(at, 2);
    return { from, to };
  }
  return null;
}

/** Where the first range begins whose end is not below `number`; the length if there is none. */
function firstEndingFrom(ranges: Ranges, number: number): number {
  let low = 0;
  let high = ranges.length / 2;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (valueAt(ranges, middle * 2 + 1) < number) low = middle + 1;
    else high = middle;
  }
  return low * 2;
}

function valueAt(ranges: Ranges, index: number): number {
  return ranges[index] as number;
}
