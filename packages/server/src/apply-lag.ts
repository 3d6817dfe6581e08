/**
 * How far a leader's state is behind its log, in entries and in time: what clients ask for waits so long, keepalives too, since an answer to
 * them must know of every entry before it.
 */
import { Fifo } from "./fifo.js";

/** With fewer entries there is no overload, however long they take: a disk may be slow, and takes many at once. */
const entriesMin = 2_048;
/** A quarter of what a client with the shortest lease waits for an answer. */
const ageMsMax = 250;

interface Mark {
  readonly lastIndex: number;
  readonly atMs: number;
}

export class ApplyLag {
  private readonly entriesMax: number;
  /** The ends of the log at turns in which it had grown, as far as they are not applied. */
  private readonly marks = new Fifo<Mark>();
  private markedIndex = 0;
  private ageMs = 0;

  /** With so many entries it is too long, however young they are. */
  constructor(entriesMax: number) {
    this.entriesMax = entriesMax;
  }

  /** Once a turn. */
  note(lastIndex: number, lastApplied: number, nowMs: number): void {
    // A log that was cut back goes on with another leader's entries.
    if (lastIndex < this.markedIndex) this.marks.clear();
    if (lastIndex !== this.markedIndex) this.marks.push({ lastIndex, atMs: nowMs });
    this.markedIndex = lastIndex;
    while (this.marks.first !== undefined && this.marks.first.lastIndex <= lastApplied) this.marks.shift();
    this.ageMs = this.marks.first === undefined ? 0 : nowMs - this.marks.first.atMs;
  }

  /** Whether so many entries that are not applied are as much as a leader takes. */
  isTooLong(entries: number): boolean {
    return entries >= this.entriesMax || (entries >= entriesMin && this.ageMs > ageMsMax);
  }
}
