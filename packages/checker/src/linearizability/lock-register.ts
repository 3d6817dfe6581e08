/**
 * One lock as a sequential object: free, or held by one, by several who share a generation, or place by place. What ends by time (an expiry,
 * the end of a maxHold) is an operation that nobody called: a hold may end unseen at any moment from `expiresFrom` on. It is put in only
 * where another operation needs it: earlier makes no difference, for an ended hold is seen by nobody until then.
 */
import { assertNever } from "../assert.js";
import type { Mode } from "../log-words.js";
import type { Interval, Moment, Specification } from "./search.js";

export type LockOperation = Interval & { readonly call: number } & LockAct;

type LockAct =
  /** Placed where it is granted. Token and slot null: it is not known what it got. */
  | {
      readonly kind: "acquire";
      /** Who holds then: different for each operation of the history. */
      readonly hold: string;
      readonly mode: Mode;
      readonly token: number | null;
      readonly slot: number | null;
      /** True time; a hold can't end by itself before. */
      readonly expiresFrom: number;
    }
  /** It stood in the queue until then, and was never granted: only refusals have to do with it, and it has no place in the order. */
  | { readonly kind: "wait"; readonly untilPosition: number }
  /** It was there, and is gone. */
  | { readonly kind: "release"; readonly hold: string }
  /** tryAcquire's "not free". */
  | { readonly kind: "refused"; readonly mode: Mode; readonly code: "lock_held" | "lock_delayed" }
  | { readonly kind: "inspect"; readonly holders: readonly { readonly token: number; readonly slot: number | null }[] }
  | { readonly kind: "force"; readonly token: number; readonly ended: number };

type ActOf<Kind extends LockAct["kind"]> = Extract<LockAct, { readonly kind: Kind }>;

interface Holder {
  readonly hold: string;
  readonly mode: Mode;
  readonly token: number | null;
  readonly slot: number | null;
  readonly expiresFrom: number;
}

export interface LockState {
  readonly holders: readonly Holder[];
  /** Place (-1: the lock itself) -> the newest generation's token. */
  readonly newest: ReadonlyMap<number, number>;
}

export const lockRegister: Specification<LockOperation, LockState> = {
  initial: { holders: [], newest: new Map() },

  apply(state, operation, moment) {
    switch (operation.kind) {
      case "acquire":
        return acquire(state, operation, moment);
      case "wait":
        return null;
      case "release":
        return state.holders.some(({ hold }) => hold === operation.hold)
          ? without(state, ({ hold }) => hold === operation.hold)
          : null;
      case "refused":
        return refuse(state, operation, moment);
      case "inspect":
        return inspect(state, operation, moment);
      case "force":
        return force(state, operation, moment);
      default:
        return assertNever(operation);
    }
  },

  keyOf({ holders, newest }) {
    const held = holders.map(({ hold, token, slot }) => `${hold}@${token}#${slot}`).sort();
    return `${held.join(" ")};${[...newest].sort(([a], [b]) => a - b).join(" ")}`;
  },
};

function acquire(
  state: LockState,
  operation: LockOperation & ActOf<"acquire">,
  moment: Moment<LockOperation>,
): LockState | null {
  const { hold, mode, token, slot, expiresFrom } = operation;
  const stays = (holder: Holder): boolean => {
    if (mode === "slot") return slot === null || holder.slot !== slot;
    return mode === "shared" && holder.mode === "shared" && isOneGeneration(state, holder.token, token);
  };
  if (!state.holders.every((holder) => stays(holder) || mayEnd(holder, moment))) return null;
  const stayed = state.holders.filter(stays);
  const joins = mode === "shared" && stayed.length > 0;
  const place = slot ?? -1;
  const newest = state.newest.get(place) ?? -1;
  // A generation that begins is newer than all before it; who joins one bears its token.
  if (token !== null && (joins ? token < newest : token <= newest)) return null;
  const learnt = joins ? stayed.map((holder) => ({ ...holder, token: holder.token ?? token })) : stayed;
  const holders = [...learnt, { hold, mode, token, slot, expiresFrom }];
  return { holders, newest: raised(state.newest, place, token) };
}

/** Of two shared holds, as far as is known; a holder of whom nothing is known may have begun a later generation itself. */
function isOneGeneration(state: LockState, held: number | null, token: number | null): boolean {
  if (held === null || token === null) return token === null || token >= (state.newest.get(-1) ?? -1);
  return held === token;
}

/** By somebody who holds it, or by somebody who waits: even what is compatible passes nobody. */
function refuse(
  state: LockState,
  operation: LockOperation & ActOf<"refused">,
  moment: Moment<LockOperation>,
): LockState | null {
  const inTheWay = state.holders.filter(({ mode }) => operation.mode !== "shared" || mode !== "shared");
  if (operation.code === "lock_delayed") {
    if (!inTheWay.every((holder) => mayEnd(holder, moment))) return null;
    return without(state, (holder) => inTheWay.includes(holder));
  }
  if (inTheWay.length > 0) return state;
  for (const other of moment.pending()) {
    if (other.kind === "acquire" || (other.kind === "wait" && other.untilPosition > operation.callPosition))
      return state;
  }
  return null;
}

function inspect(
  state: LockState,
  { holders: seen }: ActOf<"inspect">,
  moment: Moment<LockOperation>,
): LockState | null {
  // Of those who bear one token, whoever can't have ended yet is one of those seen.
  const left = [...state.holders].sort((a, b) => Number(mayEnd(a, moment)) - Number(mayEnd(b, moment)));
  const matched: Holder[] = [];
  let { newest } = state;
  for (const { token, slot } of seen) {
    const known = left.findIndex((holder) => holder.token === token && holder.slot === slot);
    const at = known >= 0 ? known : left.findIndex((holder) => mayBear(state, holder, { token, slot }));
    const [holder] = at < 0 ? [] : left.splice(at, 1);
    if (holder === undefined) return null;
    matched.push({ ...holder, token, slot });
    newest = raised(newest, slot ?? -1, token);
  }
  return left.every((holder) => mayEnd(holder, moment)) ? { holders: matched, newest } : null;
}

/** Of whom nothing is known: a generation that is newer than all known, or one of readers that may be known. */
function mayBear(
  { newest }: LockState,
  holder: Holder,
  { token, slot }: { readonly token: number; readonly slot: number | null },
): boolean {
  const last = newest.get(slot ?? -1) ?? -1;
  return holder.token === null && (holder.mode === "shared" ? token >= last : token > last);
}

function force(state: LockState, { token, ended }: ActOf<"force">, moment: Moment<LockOperation>): LockState | null {
  const hit = state.holders.filter((holder) => holder.token === token);
  const surely = hit.filter((holder) => !mayEnd(holder, moment));
  if (ended < surely.length || ended > hit.length) return null;
  return without(state, (holder) => hit.includes(holder));
}

/** Before all that is placed from now on. */
function mayEnd({ expiresFrom }: Holder, moment: Moment<LockOperation>): boolean {
  return expiresFrom <= moment.latestAt;
}

function without(state: LockState, isGone: (holder: Holder) => boolean): LockState {
  return { ...state, holders: state.holders.filter((holder) => !isGone(holder)) };
}

function raised(newest: ReadonlyMap<number, number>, place: number, token: number | null): ReadonlyMap<number, number> {
  if (token === null || token <= (newest.get(place) ?? -1)) return newest;
  return new Map([...newest, [place, token]]);
}
