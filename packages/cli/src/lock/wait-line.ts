/** What a person at a terminal sees while a command waits: one line on stderr that is written over, and is gone when the wait ends. */
import type { HolderView, LockView } from "@holdfast/client";
import { formatDuration } from "../durations.js";
import type { Io } from "../io.js";
import { plain } from "../output.js";

const everyMs = 1_000;
/** Takes what stands in the terminal's line away. */
const clearLine = "\r\u001b[K";

export class WaitLine {
  readonly #name: string;
  readonly #info: string;
  readonly #io: Pick<Io, "err" | "isStatusLine">;
  readonly #nowMs: () => number;
  #timer: NodeJS.Timeout | null = null;
  /** The holding that is waited for, and since when that is known. */
  #holder: { readonly token: number; readonly sinceMs: number } | null = null;
  #isShown = false;
  /** Counts waits: an answer to an earlier one is dropped. */
  #wait = 0;

  /** `info`: what this process says of itself, by which it finds its place in the queue. */
  constructor(name: string, info: string, io: WaitLineIo, nowMs: () => number = () => performance.now()) {
    this.#name = name;
    this.#info = info;
    this.#io = io;
    this.#nowMs = nowMs;
  }

  /** Looks now and then, until `stop`. A look that fails shows nothing new. */
  start(look: () => Promise<LockView | null>, intervalMs: number = everyMs): void {
    if (!this.#io.isStatusLine) return;
    const wait = ++this.#wait;
    const show = async (): Promise<void> => {
      const lock = await look().catch(() => null);
      if (wait !== this.#wait || this.#timer === null) return;
      if (lock !== null) this.#show(lock);
      this.#timer.refresh();
    };
    this.#timer = setTimeout(() => void show(), intervalMs);
    this.#timer.unref();
  }

  stop(): void {
    this.#wait += 1;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#holder = null;
    this.#clear();
  }

  /** A line that stays. */
  say(text: string): void {
    this.#clear();
    this.#io.err(text);
  }

  #show(lock: LockView): void {
    const holder = lock.holders[0];
    const now = this.#nowMs();
    if (holder === undefined) this.#holder = null;
    else if (this.#holder?.token !== holder.token) this.#holder = { token: holder.token, sinceMs: now };
    const text = waitText(this.#name, lock, { info: this.#info, seenMs: now - (this.#holder?.sinceMs ?? now) });
    this.#io.err(`${clearLine}${text}`);
    this.#isShown = true;
  }

  #clear(): void {
    if (this.#isShown) this.#io.err(clearLine);
    this.#isShown = false;
  }
}

type WaitLineIo = Pick<Io, "err" | "isStatusLine">;

/** "doc:42: 3rd in line; held by host:77 report, token 4711, for 12s or longer". When a holding began is not known to the cluster. */
export function waitText(
  name: string,
  lock: LockView,
  own: { readonly info: string; readonly seenMs: number },
): string {
  const [holder] = lock.holders;
  return `${plain(name)}: ${placeText(lock, own.info)}; ${holder === undefined ? "nobody holds it" : heldText(lock, holder, own.seenMs)}`;
}

/** A view names the first waiters only; whoever stands further back is one of the rest. */
function placeText({ waiters, waiterCount }: LockView, ownInfo: string): string {
  const at = waiters.findIndex(({ info }) => info === ownInfo);
  if (at >= 0) return `${ordinal(at + 1)} in line`;
  const first = waiters.length + 1;
  if (waiterCount < first) return `behind ${waiterCount} others`;
  return `${first === waiterCount ? "" : `${ordinal(first)} to `}${ordinal(waiterCount)} in line`;
}

function heldText(lock: LockView, holder: HolderView, seenMs: number): string {
  const others = lock.holderCount > 1 ? ` and ${lock.holderCount - 1} more` : "";
  const seconds = Math.floor(seenMs / 1_000);
  const since = seconds === 0 ? "" : `, for ${formatDuration(seconds * 1_000)} or longer`;
  return `held by ${plain(holder.info)}${others}, token ${holder.token}${since}`;
}

/** 1st, 2nd, 3rd, 4th, 11th, 21st. */
export function ordinal(place: number): string {
  const tens = place % 100;
  if (tens >= 11 && tens <= 13) return `${place}th`;
  return `${place}${["th", "st", "nd", "rd"][place % 10] ?? "th"}`;
}
