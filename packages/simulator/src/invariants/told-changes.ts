/** What watches are told, against what the machines have done: in the log's order, and nothing missing without a gap. */
import type { WatchEvent } from "@holdfast/client";
import type { Effect } from "@holdfast/lock";
import { demand } from "./invariant-error.js";

type Changed = Extract<Effect, { readonly kind: "changed" }>;

/** What each entry has changed, by the first node that has applied it. */
export class ChangeBook {
  readonly #changes = new Map<number, readonly Changed[]>();

  note(index: number, effects: readonly Effect[]): void {
    if (this.#changes.has(index)) return;
    const changes = effects.filter((effect) => effect.kind === "changed");
    if (changes.length > 0) this.#changes.set(index, changes);
  }

  changesAt(index: number): readonly Changed[] {
    return this.#changes.get(index) ?? [];
  }
}

/** Of one watch, from its first event on. */
export class ToldChanges {
  readonly #book: ChangeBook;
  readonly #name: string;
  readonly #isPrefix: boolean;
  /** The entry that was told of last, and how many of its changes; null before the first gap. */
  #index: number | null = null;
  #told = 0;

  constructor(book: ChangeBook, name: string, isPrefix: boolean) {
    this.#book = book;
    this.#name = name;
    this.#isPrefix = isPrefix;
  }

  get #watch(): string {
    return `the watch of ${this.#isPrefix ? "locks that begin with " : ""}"${this.#name}"`;
  }

  judge(event: WatchEvent): void {
    const last = this.#index;
    if (event.type === "gap") {
      demand(
        last === null || event.index >= last,
        "told-changes",
        () => `${this.#watch} goes back from ${last} to ${event.index}`,
      );
      this.#index = event.index;
      // Whatever else the entry has changed belongs to the gap.
      this.#told = Number.POSITIVE_INFINITY;
      return;
    }
    demand(last !== null, "told-changes", () => `${this.#watch} begins without a gap`);
    demand(event.index >= last, "told-changes", () => `${this.#watch} goes back from ${last} to ${event.index}`);
    if (event.index > last) this.#passTo(last, event.index);
    const change = this.#changesAt(event.index)[this.#told];
    demand(change !== undefined && isSame(change, event), "told-changes", () => {
      return `${this.#watch} is told ${JSON.stringify(event)}, and the machines say ${JSON.stringify(change)}`;
    });
    this.#told += 1;
  }

  #passTo(last: number, index: number): void {
    const missed = this.#told < this.#changesAt(last).length ? last : this.#firstBetween(last, index);
    demand(missed === null, "told-changes", () => {
      return `${this.#watch} is told of entry ${index}, and was never told all of entry ${missed}`;
    });
    this.#index = index;
    this.#told = 0;
  }

  #firstBetween(last: number, index: number): number | null {
    for (let at = last + 1; at < index; at += 1) if (this.#changesAt(at).length > 0) return at;
    return null;
  }

  #changesAt(index: number): readonly Changed[] {
    return this.#book
      .changesAt(index)
      .filter(({ name }) => (this.#isPrefix ? name.startsWith(this.#name) : name === this.#name));
  }
}

function isSame({ name, change, token, slot }: Changed, event: Exclude<WatchEvent, { readonly type: "gap" }>): boolean {
  if (name !== event.name || slot !== event.slot) return false;
  if (event.type === "delay_ended") return change === "delayEnded";
  return change === event.type && token === event.token;
}
