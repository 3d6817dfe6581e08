/**
 * Keeps what a snapshot in progress has yet to write from being changed first. Every session, request and delay bears the number of the
 * snapshot it is settled for: written into it, or made after it began. Whoever changes or removes one calls `saveX` before; then a
 * record of its old state goes to the snapshot ahead of its turn. A change costs one small record, at most once in a snapshot.
 */
import { delayRecord, requestRecord, sessionRecord } from "./snapshot-records.js";
import type { SnapshotRecord } from "./snapshot-records.js";
import type { Delay, KeptRequest, Lock, Session } from "./records.js";

interface SnapshotCounts {
  sessions: number;
  requests: number;
  delays: number;
}

export class CopyOnWrite {
  /** The newest snapshot's number. New records bear it: no snapshot so far has to hold them. */
  epoch = 0;
  readonly counts: SnapshotCounts = { sessions: 0, requests: 0, delays: 0 };
  private sink: SnapshotRecord[] | null = null;

  get isActive(): boolean {
    return this.sink !== null;
  }

  /** Records go to `sink` from now on. */
  begin(sink: SnapshotRecord[]): void {
    this.epoch += 1;
    this.sink = sink;
    this.counts.sessions = 0;
    this.counts.requests = 0;
    this.counts.delays = 0;
  }

  end(): void {
    this.sink = null;
  }

  saveSession(session: Session): void {
    if (this.sink === null || session.saved === this.epoch) return;
    session.saved = this.epoch;
    this.sink.push(sessionRecord(session));
    this.counts.sessions += 1;
  }

  /** Its session goes first: the loader meets no request of a session that it doesn't know. */
  saveRequest(session: Session, request: KeptRequest): void {
    if (this.sink === null || request.saved === this.epoch) return;
    this.saveSession(session);
    request.saved = this.epoch;
    this.sink.push(requestRecord(session.id, request));
    this.counts.requests += 1;
  }

  saveDelay(lock: Lock, delay: Delay): void {
    if (this.sink === null || delay.saved === this.epoch) return;
    delay.saved = this.epoch;
    this.sink.push(delayRecord(lock, delay));
    this.counts.delays += 1;
  }
}
