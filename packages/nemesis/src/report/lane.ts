/** What a picture of a run shows, before it is drawn: for each process what lasted, and what happened. Times as in the history. */

export type BarStyle = "up" | "leads" | "serves" | "paused" | "hold" | "jeopardy";

export interface Bar {
  readonly style: BarStyle;
  readonly from: number;
  readonly to: number;
  /** Shown when there is room for it. */
  readonly label: string;
  /** Shown under a pointer. */
  readonly title: string;
  /** Of holds: which lock, from 0 in the order in which they were first held; else 0. */
  readonly hue: number;
}

export type MarkStyle = "killed" | "lost" | "refused" | "rate";

export interface Mark {
  readonly style: MarkStyle;
  readonly at: number;
  readonly title: string;
}

export interface Lane {
  readonly name: string;
  readonly bars: readonly Bar[];
  readonly marks: readonly Mark[];
}

/** Something that has begun and whose end comes, or doesn't. */
type Open = Omit<Bar, "to">;

/** A lane that is being filled. */
export class LaneBuilder {
  readonly name: string;
  readonly #bars: Bar[] = [];
  readonly #marks: Mark[] = [];
  readonly #open = new Map<string, Open>();

  constructor(name: string) {
    this.name = name;
  }

  mark(style: MarkStyle, at: number, title: string): void {
    this.#marks.push({ style, at, title });
  }

  /** What is open under this key ends then. */
  begin(key: string, open: Open): void {
    this.end(key, open.from);
    this.#open.set(key, open);
  }

  end(key: string, at: number): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    this.#bars.push({ ...open, to: at });
  }

  /** A process that is stopped, frozen or burning. */
  pause(process: string, from: number): void {
    this.begin("paused", { from, style: "paused", label: "", title: `${process} stands still`, hue: 0 });
  }

  resume(at: number): void {
    this.end("paused", at);
  }

  endAll(at: number): void {
    for (const key of [...this.#open.keys()]) this.end(key, at);
  }

  finish(at: number): Lane {
    this.endAll(at);
    return { name: this.name, bars: this.#bars, marks: this.#marks };
  }
}
