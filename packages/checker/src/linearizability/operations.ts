/** The calls of a history as operations on each lock. */
import { acquiredBy } from "../books/calls.js";
import type { AcquireOperation, Call } from "../books/calls.js";
import type { LedgerHold } from "../ledger.js";
import type { Run } from "../run.js";
import { requestText } from "../texts.js";
import { resolve } from "../unknowns.js";
import { EarliestEnds } from "./earliest-ends.js";
import type { LockOperation } from "./lock-register.js";
import type { Interval } from "./search.js";

/** By lock name. */
export function operationsByLock(run: Run): Map<string, LockOperation[]> {
  const byLock = new Map<string, LockOperation[]>();
  const add: Add = (name, operation) => append(byLock, name, operation);
  const parts = partsOf(run);
  for (const call of run.calls.calls.values()) {
    if (call.op.kind === "acquire") addAcquire(run, call, call.op, parts, add);
    else addOther(run, call, parts, add);
  }
  for (const [name, operations] of byLock) byLock.set(name, endedByRelease(operations.filter(isTelling(operations))));
  return byLock;
}

interface Parts {
  readonly earliest: EarliestEnds;
  readonly lost: LostGrants;
  readonly waits: ReadonlyMap<string, readonly Wait[]>;
  /** Names. */
  readonly semaphores: ReadonlySet<string>;
}

function partsOf(run: Run): Parts {
  const calls = [...run.calls.calls.values()];
  const semaphores = calls.flatMap(({ op }) => (op.kind === "acquire" && op.mode === "slot" ? op.names : []));
  return {
    earliest: new EarliestEnds(run),
    lost: new LostGrants(run),
    waits: waitsByLock(run),
    semaphores: new Set(semaphores),
  };
}

/** Positions between which a request that was never granted may have stood in a queue. */
interface Wait {
  readonly from: number;
  readonly until: number;
}

type Add = (name: string, operation: LockOperation) => void;

function addAcquire(run: Run, call: Call, op: AcquireOperation, parts: Parts, add: Add): void {
  const { mode, names } = op;
  const acquired = acquiredBy(call);
  const common = { call: call.call, kind: "acquire", mode } as const;
  if (acquired !== null) {
    const expiresFrom = parts.earliest.endOf(call, op, acquired.session);
    for (const { name, token, slot } of acquired.grants)
      add(name, { ...intervalOf(call), ...common, hold: holdOf(call.call), token, slot, expiresFrom });
  }
  const result = call.end?.result ?? null;
  const [name] = names;
  // Of several names nobody knows which was not free.
  if (result?.kind === "refused" && names.length === 1 && name !== undefined) {
    const queueFrom =
      parts.waits.get(name)?.find(({ until }) => until > call.position)?.from ?? Number.POSITIVE_INFINITY;
    add(name, { ...intervalOf(call), call: call.call, kind: "refused", mode, code: result.code, queueFrom });
  }
  // Granted, and its client was never told, or had given up: its library, or the end of its session, may take it back at any time. Whatever it
  // came to in the end, it may have been granted once before, in a session that was lost.
  const endless = Number.POSITIVE_INFINITY;
  const untold = { callPosition: call.position, returnPosition: endless, returnAt: endless, expiresFrom: call.at };
  for (const { session, request, grants } of untoldHolds(run, call)) {
    const hold = `${call.call} ${requestText(session, request)}`;
    for (const { name, token, slot } of grants)
      add(name, { ...untold, ...common, hold, isRequired: true, token, slot });
  }
  if (isKnown(run, call, parts.lost) || result?.kind === "failed") return;
  const hold = `${call.call} unknown`;
  for (const each of names) add(each, { ...untold, ...common, hold, isRequired: false, token: null, slot: null });
}

function holdOf(call: number): string {
  return String(call);
}

/** By the log. */
function untoldHolds(run: Run, call: Call): ReadonlySet<LedgerHold> {
  const acquired = acquiredBy(call);
  const holds = call.sent.flatMap(({ session, request }) => {
    const isTold = acquired !== null && acquired.session === session && acquired.request === request;
    return isTold ? [] : (run.ledger.requestFor(session, request)?.hold ?? []);
  });
  return new Set(holds);
}

/** By the log: requests that stood in the queues and were never granted. Of each lock in the order of their calls. */
function waitsByLock(run: Run): Map<string, Wait[]> {
  const byLock = new Map<string, Wait[]>();
  for (const { op, position, sent } of run.calls.calls.values()) {
    if (op.kind !== "acquire") continue;
    const requests = new Set(sent.map(({ session, request }) => run.ledger.requestFor(session, request)));
    for (const request of requests) {
      const last = request?.outcomes.at(-1);
      if (request === null || request.hold !== null || request.outcomes[0]?.outcome.kind !== "waiting") continue;
      const isOpen = last === undefined || last.outcome.kind === "waiting";
      const wait = { from: position, until: isOpen ? Number.POSITIVE_INFINITY : run.commitPosition(last.index) };
      for (const name of op.names) append(byLock, name, wait);
    }
  }
  return byLock;
}

/** Whether all that became of an acquire is known: from the log, or because nothing can have become of it but what its client was told. */
function isKnown(run: Run, call: Call, lost: LostGrants): boolean {
  const resolution = resolve(run, call);
  if (resolution === "open") return false;
  if (run.calls.tellsSending && run.isLedgerWhole) return true;
  return resolution === "known" && !lost.maybe(call);
}

/** Who may have been granted something once before, that was taken away before it was told: as far as sessions are told at all. */
class LostGrants {
  private readonly isForced: boolean;
  private readonly opened: ReadonlySet<string>;
  private readonly ended: Map<string, number[]> = new Map();

  constructor({ calls }: Run) {
    this.isForced = [...calls.calls.values()].some(({ op }) => op.kind === "forceRelease");
    this.opened = new Set(calls.opened.map(({ event }) => event.client));
    for (const { event, position } of calls.ended) append(this.ended, event.client, position);
  }

  maybe({ client, op, position, end }: Call): boolean {
    if (this.isForced || (op.kind === "acquire" && op.maxHoldMs > 0) || !this.opened.has(client)) return true;
    const until = end?.position ?? Number.POSITIVE_INFINITY;
    return (this.ended.get(client) ?? []).some((at) => at > position && at < until);
  }
}

function addOther(run: Run, call: Call, { semaphores }: Parts, add: Add): void {
  const { op, end } = call;
  const result = end?.result;
  const common = { ...intervalOf(call), call: call.call };
  if (op.kind === "release" && result?.kind === "released" && result.how === "released") {
    const acquire = run.calls.calls.get(op.of);
    const grants = acquire === undefined ? [] : (acquiredBy(acquire)?.grants ?? []);
    for (const { name, token, slot } of grants)
      add(name, { ...common, kind: "release", hold: holdOf(op.of), token, slot });
  }
  if (op.kind === "inspect" && result?.kind === "inspected")
    add(op.name, { ...common, kind: "inspect", holders: result.holders });
  if (op.kind === "forceRelease" && result?.kind === "forced") {
    const hasPlaces = semaphores.has(op.name);
    add(op.name, { ...common, kind: "force", token: op.token, ended: result.ended, hasPlaces });
  }
}

function append<Item>(lists: Map<string, Item[]>, name: string, item: Item): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [item]);
  else list.push(item);
}

function intervalOf({ position, end }: Call): Interval {
  const endless = Number.POSITIVE_INFINITY;
  return {
    callPosition: position,
    returnPosition: end?.position ?? endless,
    returnAt: end?.at ?? endless,
    isRequired: true,
  };
}

/**
 * An acquire of which nothing is known explains only that somebody else found the lock not free, or that a generation of readers went on.
 * Where nobody did, it is left out: it would make the search longer and its answer no different.
 */
function isTelling(operations: readonly LockOperation[]): (operation: LockOperation) => boolean {
  const isSeen = operations.some(({ kind }) => kind === "refused" || kind === "inspect");
  const isShared = operations.some((each) => each.kind === "acquire" && each.mode === "shared");
  return ({ isRequired }) => isRequired || isSeen || isShared;
}

/** What was given back was held until then: no order in which it ends before gets past its release, and none of them need be tried. */
export function endedByRelease(operations: readonly LockOperation[]): LockOperation[] {
  const released = new Set(operations.flatMap((each) => (each.kind === "release" ? each.hold : [])));
  return operations.map((each) => {
    const isReleased = each.kind === "acquire" && released.has(each.hold);
    return isReleased ? { ...each, expiresFrom: Number.POSITIVE_INFINITY } : each;
  });
}
