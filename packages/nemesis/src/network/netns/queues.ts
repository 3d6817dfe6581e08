/** What goes out of a party waits in a queue per way: for a delay, or for its turn at a rate. */
import type { Shape } from "../network.js";
import { NetnsError } from "./netns-error.js";
import { queueMajor } from "./packets.js";

/** Of a way without a rate: far above what a machine sends itself. */
const unlimitedBytesPerSecond = 1_250_000_000;
/** One full packet, with its frame. */
const packetBytes = 1_514;
/** A burst is what a timer of the kernel that fires each 4 ms has to let through to hold the rate. */
const burstSeconds = 0.004;
/** As much as a router would keep: more, and a slow way would only be a late one. */
const queueSeconds = 0.5;
/** Less is a window of TCP that no transfer gets out of. */
const queueBytesMin = 20 * packetBytes;
/** Delayed packets on their way at once: 1 s of 100 MB/s. Above it netem loses them. */
const delayedPacketsMax = 100_000;

/** The root: what no class is for passes at once. Large packets would pass a slow queue in one piece, and starve the others for seconds. */
export function rootQueue(device: string): string[][] {
  return [
    ["ip", "link", "set", "dev", device, "gso_max_segs", "1"],
    ["tc", "qdisc", "add", "dev", device, "root", "handle", `${queueMajor}:`, "htb", "default", "0"],
  ];
}

/** The commands that shape the ways of a class, which may have been shaped before. */
export function shapeCommands(device: string, classId: number, shape: Shape, isNew: boolean): string[][] {
  const id = `${queueMajor}:${classId.toString(16)}`;
  const rate = shape.bytesPerSecond ?? unlimitedBytesPerSecond;
  // The word "bps" of tc is bytes per second.
  const burst = `${Math.max(2 * packetBytes, Math.ceil(rate * burstSeconds))}`;
  const limits = ["rate", `${rate}bps`, "burst", burst, "cburst", burst];
  const queue =
    shape.delayMs === undefined && shape.jitterMs === undefined
      ? ["bfifo", "limit", `${Math.max(queueBytesMin, Math.round(rate * queueSeconds))}`]
      : ["netem", "limit", `${delayedPacketsMax}`, "delay", ...netemDelay(shape)];
  const parent = ["parent", id];
  return [
    [
      "tc",
      "class",
      isNew ? "add" : "change",
      "dev",
      device,
      "parent",
      `${queueMajor}:`,
      "classid",
      id,
      "htb",
      ...limits,
    ],
    ["tc", "qdisc", "replace", "dev", device, ...parent, ...queue],
  ];
}

export function unshapeCommand(device: string, classId: number): string[] {
  return ["tc", "class", "del", "dev", device, "classid", `${queueMajor}:${classId.toString(16)}`];
}

/** netem draws evenly from the middle, less and more: so the middle lies half a jitter up. */
function netemDelay({ delayMs = 0, jitterMs = 0 }: Shape): string[] {
  const half = jitterMs / 2;
  const word = (ms: number): string => `${Math.round(ms * 1_000)}us`;
  return jitterMs === 0 ? [word(delayMs)] : [word(delayMs + half), word(half)];
}

/** Above these the kernel's own numbers run over, or a run has no end. */
const longestMs = 60_000;
const leastBytesPerSecond = 1_000;

/** Refuses what makes no sense, by name. */
export function checkShape(shape: Shape): void {
  const { delayMs = 0, jitterMs = 0, lossFraction = 0, bytesPerSecond = leastBytesPerSecond } = shape;
  for (const [name, ms] of [
    ["delayMs", delayMs],
    ["jitterMs", jitterMs],
  ] as const) {
    if (!(ms >= 0 && ms <= longestMs)) throw bad(name, ms, `from 0 to ${longestMs}`);
  }
  if (!(lossFraction >= 0 && lossFraction <= 1)) throw bad("lossFraction", lossFraction, "from 0 to 1");
  if (!(bytesPerSecond >= leastBytesPerSecond && bytesPerSecond <= unlimitedBytesPerSecond)) {
    throw bad("bytesPerSecond", bytesPerSecond, `from ${leastBytesPerSecond} to ${unlimitedBytesPerSecond}`);
  }
}

function bad(name: string, value: number, range: string): NetnsError {
  return new NetnsError("bad_argument", `${name} is ${value}: it is ${range}`);
}
