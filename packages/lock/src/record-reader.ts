/** Reads the fields of a snapshot's record one after the other, and refuses what can't be there. */
import type { SnapshotValue } from "./snapshot-records.js";
import type { Grant, HolderView, LossReason, Mode, Outcome } from "./types.js";

/** A snapshot's piece says what none of ours could: it was damaged or made by another program. */
export class SnapshotError extends Error {
  override readonly name: string = "SnapshotError";
  readonly code: "malformed_snapshot" | "newer_snapshot" = "malformed_snapshot";
}

/** A later release wrote it. Nothing is wrong with it. */
export class NewerSnapshotError extends SnapshotError {
  override readonly name: string = "NewerSnapshotError";
  override readonly code = "newer_snapshot";
}

const modes: readonly Mode[] = ["exclusive", "shared", "slot"];
const reasons: readonly LossReason[] = ["expired", "forced", "max_hold", "closed", "restored"];

export class RecordReader {
  private readonly values: readonly unknown[];
  private readonly what: string;
  private at = 0;

  constructor(value: unknown, what: string) {
    this.what = what;
    if (!Array.isArray(value)) throw new SnapshotError(`${what} is no list`);
    this.values = value;
  }

  /** Whole, not negative, exact. */
  number(): number {
    const value = this.next();
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : this.fail("a whole number");
  }

  /** An index, a token or a request's number. */
  positive(): number {
    const value = this.number();
    return value > 0 ? value : this.fail("a number from 1");
  }

  /** The number of a place, or -1 for none. */
  place(): number {
    const value = this.next();
    return typeof value === "number" && Number.isSafeInteger(value) && value >= -1 ? value : this.fail("a place");
  }

  text(): string {
    const value = this.next();
    return typeof value === "string" ? value : this.fail("a text");
  }

  boolean(): boolean {
    const value = this.next();
    return typeof value === "boolean" ? value : this.fail("true or false");
  }

  mode(): Mode {
    const value = this.next();
    return modes.find((mode) => mode === value) ?? this.fail("a mode");
  }

  reason(): LossReason {
    const value = this.next();
    return reasons.find((reason) => reason === value) ?? this.fail("a reason");
  }

  list<Item>(readItem: (reader: RecordReader) => Item): Item[] {
    const reader = new RecordReader(this.next(), this.what);
    const items: Item[] = [];
    while (reader.at < reader.values.length) items.push(readItem(reader));
    return items;
  }

  /** A list within: its fields belong together. */
  group<Item>(readFields: (reader: RecordReader) => Item): Item {
    const reader = new RecordReader(this.next(), this.what);
    const item = readFields(reader);
    reader.end();
    return item;
  }

  nullable<Item>(readItem: (reader: RecordReader) => Item): Item | null {
    if (this.at < this.values.length && this.values[this.at] === null) {
      this.at += 1;
      return null;
    }
    return readItem(this);
  }

  get isAtEnd(): boolean {
    return this.at === this.values.length;
  }

  end(): void {
    if (this.at !== this.values.length) this.fail("nothing more");
  }

  fail(expected: string): never {
    throw new SnapshotError(`${this.what}: expected ${expected} at field ${this.at}`);
  }

  private next(): SnapshotValue | undefined {
    const value = this.values[this.at] as SnapshotValue | undefined;
    this.at += 1;
    return value;
  }
}

/** Only those that a request which is over can have. */
export function readOutcome(reader: RecordReader): Outcome {
  const kind = reader.text();
  switch (kind) {
    case "lost":
      return { kind, reason: reader.reason(), index: reader.positive() };
    case "released":
    case "cancelled":
    case "infoSet":
      return { kind };
    case "alreadyGranted":
      return { kind, grants: reader.list((each) => each.group(readGrant)) };
    case "notHeld":
      return { kind, holders: reader.list((each) => each.group(readHolder)) };
    case "lockHeld":
      return { kind, name: reader.text(), holder: reader.nullable((each) => each.group(readHolder)) };
    case "lockDelayed":
      return { kind, name: reader.text(), delayMs: reader.number() };
    case "slotsDiffer":
      return { kind, name: reader.text(), slots: reader.number() };
    default:
      return reader.fail("an outcome of what is over");
  }
}

function readGrant(reader: RecordReader): Grant {
  return { name: reader.text(), token: reader.positive(), slot: reader.nullable((each) => each.number()) };
}

function readHolder(reader: RecordReader): HolderView {
  const session = reader.positive();
  const request = reader.positive();
  const token = reader.positive();
  const slot = reader.nullable((each) => each.number());
  const mode = reader.mode();
  return { session, request, token, slot, mode, info: reader.text() };
}
