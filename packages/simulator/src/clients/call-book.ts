/** The calls of one client: told to the history, and listed while they are open, since each has to end. */
import type { CallResult, Operation } from "@holdfast/checker";
import type { Scheduler } from "../scheduler.js";
import type { CallNumbers, HistorySink } from "./sink.js";

export interface OpenCall {
  readonly description: string;
  /** In true time. */
  readonly ageMs: number;
}

interface Open {
  readonly description: string;
  readonly sinceMs: number;
}

export interface CallBookParts {
  readonly scheduler: Scheduler;
  readonly sink: HistorySink;
  readonly numbers: CallNumbers;
}

export class CallBook {
  readonly #client: string;
  readonly #parts: CallBookParts;
  readonly #open = new Set<Open>();
  readonly #numbered = new Map<number, Open>();
  /** Acquire -> the first release of its lock. */
  readonly #releases = new Map<number, number>();
  #close: number | null = null;

  constructor(client: string, parts: CallBookParts) {
    this.#client = client;
    this.#parts = parts;
  }

  begin(op: Operation): number {
    const call = this.#parts.numbers.next();
    if (op.kind === "release" && !this.#releases.has(op.of)) this.#releases.set(op.of, call);
    if (op.kind === "close") this.#close ??= call;
    this.#numbered.set(call, this.#add(`call ${call}: ${textOf(op)}`));
    this.#parts.sink.emit({ kind: "call", client: this.#client, call, op });
    return call;
  }

  end(call: number, result: CallResult): void {
    const open = this.#numbered.get(call);
    if (open === undefined) return;
    this.#numbered.delete(call);
    this.#open.delete(open);
    this.#parts.sink.emit({ kind: "return", call, result });
  }

  /** What histories have no word for: it has to end all the same. */
  async follow<T>(description: string, promise: Promise<T>): Promise<T> {
    const open = this.#add(description);
    try {
      return await promise;
    } finally {
      this.#open.delete(open);
    }
  }

  open(): readonly OpenCall[] {
    const { nowMs } = this.#parts.scheduler;
    return [...this.#open].map(({ description, sinceMs }) => ({ description, ageMs: nowMs - sinceMs }));
  }

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  releaseOf(acquire: number): number | null {
    return this.#releases.get(acquire) ?? null;
  }

  get closing(): number | null {
    return this.#close;
  }

  #add(description: string): Open {
    const open = { description, sinceMs: this.#parts.scheduler.nowMs };
    this.#open.add(open);
    return open;
  }
}

function textOf(op: Operation): string {
  switch (op.kind) {
    case "acquire":
      return `${op.wait ? "acquire" : "tryAcquire"} ${op.mode} ${op.names.join(" ")}`;
    case "release":
      return `release of call ${op.of}`;
    case "close":
      return "close";
    case "forceRelease":
      return `forceRelease ${op.name}@${op.token}`;
    case "inspect":
      return `inspect ${op.name}`;
    default:
      return op satisfies never;
  }
}
