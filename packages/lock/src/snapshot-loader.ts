/**
 * Makes a machine out of a snapshot's pieces, in the order in which the cursor gave them. The tables of locks follow from the acquires:
 * holders and waiters stand in the order of their requests, so they are sorted where the records came in another.
 */
import { eighthsMax, recordsMax } from "./limits.js";
import { addHolder } from "./holders.js";
import { LockMachine } from "./lock-machine.js";
import { isPlaceTaken, placesMax, takePlace } from "./places.js";
import { WaitQueue } from "./queue.js";
import { NewerSnapshotError, readOutcome, RecordReader, SnapshotError } from "./record-reader.js";
import { Acquire, Delay, noPlace, Past, Session } from "./records.js";
import type { Claim, Lock } from "./records.js";
import { findRequest, isSettled, keep } from "./requests.js";
import { keysProblem } from "./signing-keys.js";
import { recordKind, snapshotFormat } from "./snapshot-records.js";
import type { SnapshotPiece } from "./snapshot-records.js";
import { State } from "./state.js";
import type { PublicKey, SessionId } from "./types.js";
import { checkVersion, versionRange } from "./versions.js";
import type { VersionRange } from "./versions.js";

export class SnapshotLoader {
  private readonly state: State = new State();
  private readonly counts = { sessions: 0, requests: 0, delays: 0 };
  private readonly unsorted: Set<Lock> = new Set();
  private readonly range: VersionRange;
  private stage: "header" | "records" | "ended" | "finished" = "header";

  /** `range`: the cluster versions that can be run. */
  constructor(range: VersionRange = versionRange) {
    this.range = range;
  }

  /**
   * Throws SnapshotError on what no cursor could have written, NewerSnapshotError or VersionError on what one of another release has. The
   * loader is of no use any more then.
   */
  push(piece: SnapshotPiece): void {
    if (!Array.isArray(piece)) throw new SnapshotError("a piece is no list");
    for (const record of piece as readonly unknown[]) this.read(new RecordReader(record, "a record"));
  }

  /** After the last piece, once. Throws SnapshotError when pieces are missing. */
  finish(): LockMachine {
    if (this.stage !== "ended") throw new SnapshotError("the snapshot is not complete");
    this.stage = "finished";
    for (const lock of this.unsorted) sortClaims(lock);
    return new LockMachine(this.state);
  }

  private read(reader: RecordReader): void {
    const kind = reader.number();
    if ((this.stage === "header") !== (kind === recordKind.header)) reader.fail("the header, once, at the beginning");
    if (this.stage === "ended" || this.stage === "finished") reader.fail("nothing after the end");
    switch (kind) {
      case recordKind.header:
        this.readHeader(reader);
        break;
      case recordKind.session:
        this.readSession(reader);
        break;
      case recordKind.acquire:
        this.readAcquire(reader);
        break;
      case recordKind.past:
        this.readPast(reader);
        break;
      case recordKind.delay:
        this.readDelay(reader);
        break;
      case recordKind.restored:
        this.readRestored(reader);
        break;
      case recordKind.signingKeys:
        this.readSigningKeys(reader);
        break;
      case recordKind.end:
        this.readEnd(reader);
        break;
      default:
        reader.fail("a known kind of record");
    }
    reader.end();
  }

  /** Before anything else: what comes after it may be written in ways that this release doesn't know. */
  private readHeader(reader: RecordReader): void {
    const format = reader.number();
    if (format > snapshotFormat) {
      throw new NewerSnapshotError(
        `the snapshot has format ${format}, and this release knows ${snapshotFormat} at most`,
      );
    }
    if (format !== snapshotFormat) reader.fail(`format ${snapshotFormat}`);
    this.state.lastIndex = reader.number();
    const ended = reader.list((each) =>
      each.group((fields) => ({ id: fields.positive(), reason: fields.reason(), request: fields.number() })),
    );
    for (const session of ended) {
      if (this.state.ended.find(session.id) !== null) reader.fail("a session that ended once");
      this.state.ended.add(session);
    }
    if (!reader.isAtEnd) this.state.clusterVersion = reader.positive();
    if (this.state.lastIndex > 0) checkVersion(this.state.clusterVersion, this.range);
    this.stage = "records";
  }

  private readRestored(reader: RecordReader): void {
    const { state, counts } = this;
    const isFirst = state.restoredIndex === 0 && counts.sessions === 0 && counts.delays === 0;
    state.restoredIndex = reader.positive();
    state.closedMs = reader.number();
    if (!isFirst || state.restoredIndex > state.lastIndex) reader.fail("one restore, before all that came after it");
  }

  private readSigningKeys(reader: RecordReader): void {
    const { state, counts } = this;
    if (state.signingKey !== null || counts.sessions > 0 || counts.delays > 0)
      reader.fail("the keys once, before sessions");
    state.signingKey = { ...readPublicKey(reader), seed: reader.text() };
    state.formerKeys = reader.list((each) => each.group(readPublicKey));
    const problem = keysProblem(state);
    if (problem !== null) reader.fail(problem);
  }

  private readSession(reader: RecordReader): void {
    const session = new Session(reader.positive(), reader.text(), reader.number(), reader.text(), 0);
    session.silence = reader.number();
    session.settled = reader.positive();
    session.seen = reader.list((each) => each.positive());
    const { id, key, silence, seen, settled } = session;
    if (silence > eighthsMax) reader.fail("a silence of at most 8");
    if (!areRanges(seen, settled)) reader.fail("ranges that rise from `settled`");
    if (this.state.sessionFor(id) !== null || this.state.sessionWithKey(key) !== null) reader.fail("a session once");
    if (this.state.endReason(id) !== null) reader.fail("a session that has not ended");
    this.state.addSession(session);
    this.counts.sessions += 1;
  }

  private readAcquire(reader: RecordReader): void {
    const { session, number } = this.readRequest(reader);
    const index = reader.positive();
    const mode = reader.mode();
    const slots = reader.number();
    const lockDelayMs = reader.number();
    const maxHoldMs = reader.number();
    const info = reader.text();
    const isGranted = reader.boolean();
    const names = reader.list((each) => each.text());
    const tokens = reader.list((each) => each.positive());
    const places = reader.list((each) => each.place());
    if ((mode === "slot") !== slots > 0) reader.fail("places for slots, and only for those");
    if (names.length === 0 || names.some((name, at) => at > 0 && name <= (names[at - 1] as string))) {
      reader.fail("names that rise");
    }
    const grants = isGranted ? names.length : 0;
    if (isGranted && this.state.closedMs > 0) reader.fail("no hold while nothing is granted");
    if (tokens.length !== grants || places.length !== grants) reader.fail("a token and a place for each name");
    const locks = names.map((name) => this.lockOf(reader, name, slots));
    const acquire = new Acquire(session, number, { index, mode, lockDelayMs, maxHoldMs, info }, locks, 0);
    keep(this.state, session, acquire);
    acquire.isGranted = isGranted;
    let claim: Claim | null = acquire.first;
    for (let at = 0; claim !== null; at += 1, claim = claim.sibling) {
      if (isGranted) this.hold(reader, claim, tokens[at] as number, places[at] as number);
      else this.wait(claim);
    }
    if (isGranted) this.state.noteHold(acquire);
    else this.state.noteWait(acquire);
  }

  private hold(reader: RecordReader, claim: Claim, token: number, place: number): void {
    const { lock, acquire } = claim;
    const other = lock.firstHolder;
    if ((place === noPlace) !== (lock.slots === 0)) reader.fail("a place for slots, and only for those");
    if (place !== noPlace) this.usePlace(reader, lock, place);
    else if (
      other !== null &&
      (acquire.mode === "exclusive" || other.acquire.mode === "exclusive" || other.token !== token)
    ) {
      reader.fail("a hold that others allow");
    }
    claim.token = token;
    claim.place = place;
    if (lock.lastHolder !== null && lock.lastHolder.acquire.index >= acquire.index) this.unsorted.add(lock);
    addHolder(lock, claim);
  }

  private wait(claim: Claim): void {
    const { lock, acquire } = claim;
    lock.queue ??= new WaitQueue();
    const { last } = lock.queue;
    if (last !== null && last.acquire.index >= acquire.index) this.unsorted.add(lock);
    lock.queue.push(claim);
  }

  private readPast(reader: RecordReader): void {
    const { session, number } = this.readRequest(reader);
    const outcome = reader.group(readOutcome);
    const names = reader.nullable((each) => each.list((item) => item.text()));
    keep(this.state, session, new Past(number, outcome, names, 0));
  }

  private readDelay(reader: RecordReader): void {
    const name = reader.text();
    const slots = reader.number();
    const delay = new Delay(
      reader.positive(),
      reader.positive(),
      reader.mode(),
      reader.list((each) => each.number()),
      0,
    );
    const { index, mode, places } = delay;
    if ((mode === "slot") !== slots > 0 || (mode === "slot") !== places.length > 0) reader.fail("places for slots");
    const lock = this.lockOf(reader, name, slots);
    for (const place of places) this.usePlace(reader, lock, place);
    lock.delays ??= [];
    if (lock.delays.some((other) => other.index === index)) reader.fail("a delay once");
    lock.delays.push(delay);
    lock.delays.sort((a, b) => a.index - b.index);
    this.state.noteDelays(lock);
    this.state.runningDelays.add(delay.delayMs);
    this.counts.delays += 1;
  }

  private readEnd(reader: RecordReader): void {
    const { sessions, requests, delays } = this.counts;
    if (reader.number() !== sessions) reader.fail(`${sessions} sessions`);
    if (reader.number() !== requests) reader.fail(`${requests} requests`);
    if (reader.number() !== delays) reader.fail(`${delays} delays`);
    this.stage = "ended";
  }

  private readRequest(reader: RecordReader): { readonly session: Session; readonly number: number } {
    const id: SessionId = reader.positive();
    const session = this.state.sessionFor(id) ?? reader.fail("a session that came before");
    const number = reader.positive();
    const isNew = findRequest(session, number) === null && !isSettled(session, number);
    if (!isNew || session.requests.length >= recordsMax) reader.fail("a request that has no record yet");
    this.counts.requests += 1;
    return { session, number };
  }

  private lockOf(reader: RecordReader, name: string, slots: number): Lock {
    const lock = this.state.lockFor(name) ?? this.state.addLock(name, slots);
    return lock.slots === slots ? lock : reader.fail("the same number of places as before");
  }

  private usePlace(reader: RecordReader, lock: Lock, place: number): void {
    const isFree = place < lock.slots && place < placesMax && !isPlaceTaken(lock.places, place);
    if (!isFree) reader.fail("a free place");
    lock.places = takePlace(lock.places, place);
  }
}

function readPublicKey(reader: RecordReader): PublicKey {
  return { id: reader.text(), publicKey: reader.text(), since: reader.positive() };
}

function areRanges(values: readonly number[], settled: number): boolean {
  if (values.length % 2 !== 0) return false;
  return values.every((value, at) => {
    if (at % 2 === 1) return value >= (values[at - 1] as number);
    return at === 0 ? value > settled : value > (values[at - 1] as number) + 1;
  });
}

function sortClaims(lock: Lock): void {
  const holders = takeAll(lock.firstHolder);
  lock.firstHolder = null;
  lock.lastHolder = null;
  lock.holderCount = 0;
  for (const claim of holders) addHolder(lock, claim);
  if (lock.queue === null) return;
  const waiters = takeAll(lock.queue.first);
  lock.queue = new WaitQueue();
  for (const claim of waiters) {
    claim.block = null;
    lock.queue.push(claim);
  }
}

/** The claims from `first` on, unlinked, in the order of their requests. */
function takeAll(first: Claim | null): Claim[] {
  const claims: Claim[] = [];
  for (let claim = first; claim !== null; claim = claim.next) claims.push(claim);
  for (const claim of claims) {
    claim.previous = null;
    claim.next = null;
  }
  return claims.sort((a, b) => a.acquire.index - b.acquire.index);
}
