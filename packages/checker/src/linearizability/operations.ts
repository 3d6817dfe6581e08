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
  const add = (name: string, operation: LockOperation): void => {
    const others = byLock.get(name);
    if (others === undefined) byLock.set(name, [operation]);
    else others.push(operation);
  };
  const parts: Parts = { earliest: new EarliestEnds(run), lost: new LostGrants(run) };
  for (const call of run.calls.calls.values()) {
    if (call.op.kind === "acquire") addAcquire(run, call, call.op, parts, add);
    else addOther(run, call, add);
  }
  for (const [name, operations] of byLock) byLock.set(name, operations.filter(isTelling(operations)));
  return byLock;
}

interface Parts {
  readonly earliest: EarliestEnds;
  readonly lost: LostGrants;
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
  if (result?.kind === "refused" && names.length === 1 && name !== undefined)
    add(name, { ...intervalOf(call), call: call.call, kind: "refused", mode, code: result.code });
  // Granted, and its client was never told, or had given up: its library, or the end of its session, may take it back at any time. Whatever it
  // came to in the end, it may have been granted once before, in a session that was lost.
  const endless = Number.POSITIVE_INFINITY;
  const untold = { callPosition: call.position, returnPosition: endless, returnAt: endless, expiresFrom: call.at };
  for (const { session, request, grants } of untoldHolds(run, call)) {
    const hold = `${call.call} ${requestText(session, request)}`;
    for (const { name, token, slot } of grants)
      add(name, { ...untold, ...common, hold, isRequired: true, token, slot });
  }
  for (const untilPosition of endsOfWaits(run, call)) {
    for (const each of names) add(each, { ...untold, call: call.call, kind: "wait", isRequired: false, untilPosition });
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

/** By the log: requests that stood in the queues and were never granted, and until when. */
function endsOfWaits(run: Run, { sent }: Call): number[] {
  const requests = new Set(sent.map(({ session, request }) => run.ledger.requestFor(session, request)));
  return [...requests].flatMap((request) => {
    const last = request?.outcomes.at(-1);
    if (request === null || request.hold !== null || request.outcomes[0]?.outcome.kind !== "waiting") return [];
    return last === undefined || last.outcome.kind === "waiting" ? [Infinity] : [run.commitPosition(last.index)];
  });
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
    for (const { event, position } of calls.ended) {
      const positions = this.ended.get(event.client);
      if (positions === undefined) this.ended.set(event.client, [position]);
      else positions.push(position);
    }
  }

  maybe({ client, op, position, end }: Call): boolean {
    if (this.isForced || (op.kind === "acquire" && op.maxHoldMs > 0) || !this.opened.has(client)) return true;
    const until = end?.position ?? Number.POSITIVE_INFINITY;
    return (this.ended.get(client) ?? []).some((at) => at > position && at < until);
  }
}

function addOther(run: Run, call: Call, add: Add): void {
  const { op, end } = call;
  const result = end?.result;
  const common = { ...intervalOf(call), call: call.call };
  if (op.kind === "release" && result?.kind === "released" && result.how === "released") {
    const acquire = run.calls.calls.get(op.of);
    const grants = acquire === undefined ? [] : (acquiredBy(acquire)?.grants ?? []);
    for (const { name } of grants) add(name, { ...common, kind: "release", hold: holdOf(op.of) });
  }
  if (op.kind === "inspect" && result?.kind === "inspected")
    add(op.name, { ...common, kind: "inspect", holders: result.holders });
  if (op.kind === "forceRelease" && result?.kind === "forced")
    add(op.name, { ...common, kind: "force", token: op.token, ended: result.ended });
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
