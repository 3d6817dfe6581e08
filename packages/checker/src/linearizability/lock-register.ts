/**
 * One lock as a sequential object: free, or held by one, by several who share a generation, or place by place. What ends by time (an expiry,
 * the end of a maxHold) is an operation that nobody called: a hold may end unseen at any moment from `expiresFrom` on. It is put in only
 * where another operation needs it: earlier makes no difference, for an ended hold is seen by nobody until then.
 *
 * An acquire of which nothing is known can explain more than it should (what it is not seen to bear is not remembered): the search is never
 * too strict for it, and may be too lenient.
 */
import { assertNever } from "../assert.js";
import type { Mode } from "../log-words.js";
import type { Interval, Moment, Specification, Turn } from "./search.js";

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
  /** It was there, and is gone. Token and slot are those that its acquire got. */
  | { readonly kind: "release"; readonly hold: string; readonly token: number; readonly slot: number | null }
  /** tryAcquire's "not free". */
  | {
      readonly kind: "refused";
      readonly mode: Mode;
      readonly code: "lock_held" | "lock_delayed";
      /** From this position on it may have met somebody in the queue who was never granted. Infinity: it can't. */
      readonly queueFrom: number;
    }
  | { readonly kind: "inspect"; readonly holders: readonly { readonly token: number; readonly slot: number | null }[] }
  /** `hasPlaces`: of a semaphore, where it isn't known at which place the token was borne. */
  | { readonly kind: "force"; readonly token: number; readonly ended: number; readonly hasPlaces: boolean };

type ActOf<Kind extends LockAct["kind"]> = Extract<LockAct, { readonly kind: Kind }>;

interface Holder {
  readonly hold: string;
  readonly mode: Mode;
  /** Null: not known. Then it is that of the generation which it may have joined, or a newer one than all known. */
  readonly token: number | null;
  readonly joined: number | null;
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

  /** They end only what may have ended anyhow. A force that has ended something can be needed for it, even where it could be another's end. */
  isObservation(operation) {
    const { kind } = operation;
    return kind === "refused" || kind === "inspect" || (kind === "force" && operation.ended === 0);
  },

  keyOf({ holders, newest }) {
    const held = holders.map(({ hold, token, joined, slot }) => `${hold}@${token}/${joined}#${slot}`).sort();
    return `${held.join(" ")};${[...newest].sort(([a], [b]) => a - b).join(" ")}`;
  },

  /** Of one place tokens only rise: after a greater one no smaller one can be granted any more, nor seen, nor ended. */
  turnsOf(operation) {
    switch (operation.kind) {
      case "acquire":
        return operation.token === null ? [] : [turnOf(operation.token, operation.slot)];
      case "release":
        return [turnOf(operation.token, operation.slot)];
      case "inspect": {
        const numbers = new Map(operation.holders.map(({ token, slot }) => [slot ?? -1, token]));
        return [...numbers].map(([kind, number]) => ({ kind, number }));
      }
      case "force":
        return operation.ended === 0 || operation.hasPlaces ? [] : [turnOf(operation.token, null)];
      case "refused":
        return [];
      default:
        return assertNever(operation);
    }
  },
};

function turnOf(token: number, slot: number | null): Turn {
  return { kind: slot ?? -1, number: token };
}

function acquire(
  state: LockState,
  operation: LockOperation & ActOf<"acquire">,
  moment: Moment<LockOperation>,
): LockState | null {
  const { hold, mode, token, slot, expiresFrom } = operation;
  const stays = (holder: Holder): boolean => {
    if (mode === "slot") return slot === null || holder.slot !== slot;
    return mode === "shared" && holder.mode === "shared" && (token === null || mayBear(state, holder, { token, slot }));
  };
  if (!state.holders.every((holder) => stays(holder) || mayEnd(holder, moment))) return null;
  const stayed = state.holders.filter(stays);
  const joins = mode === "shared" && stayed.length > 0;
  const place = slot ?? -1;
  // A generation that begins is newer than all before it; who joins one bears its token.
  if (token !== null && !joins && token <= (state.newest.get(place) ?? -1)) return null;
  const generation = joins ? (token ?? generationOf(stayed)) : null;
  const learnt = joins ? stayed.map((holder) => ({ ...holder, token: holder.token ?? token })) : stayed;
  const holder: Holder = { hold, mode, token, joined: token === null ? generation : null, slot, expiresFrom };
  return { holders: [...learnt, holder], newest: raised(state.newest, place, token) };
}

/** Of readers; null: not known. */
function generationOf(holders: readonly Holder[]): number | null {
  for (const { token, joined } of holders) if (token !== null || joined !== null) return token ?? joined;
  return null;
}

/** A holder of whom nothing is known has joined a generation, or begun one that is newer than all known. */
function mayBear(
  { newest }: LockState,
  holder: Holder,
  { token, slot }: { readonly token: number; readonly slot: number | null },
): boolean {
  if (holder.token !== null) return holder.token === token;
  return token === holder.joined || token > (newest.get(slot ?? -1) ?? -1);
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
  if (operation.queueFrom < moment.latestPosition) return state;
  for (const other of moment.pending()) if (other.kind === "acquire") return state;
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
    const seenAs = { token, slot };
    const at = known >= 0 ? known : left.findIndex((each) => each.token === null && mayBear(state, each, seenAs));
    const [holder] = at < 0 ? [] : left.splice(at, 1);
    if (holder === undefined) return null;
    matched.push(holder.token === token ? holder : { ...holder, token, slot });
    newest = raised(newest, slot ?? -1, token);
  }
  if (!left.every((holder) => mayEnd(holder, moment))) return null;
  const isNews = left.length > 0 || matched.some((holder) => !state.holders.includes(holder));
  return isNews ? { holders: matched, newest } : state;
}

function force(state: LockState, { token, ended }: ActOf<"force">, moment: Moment<LockOperation>): LockState | null {
  const hit = state.holders.filter((holder) => holder.token === token);
  const maybe = state.holders.filter((holder) => {
    return holder.token === null && mayBear(state, holder, { token, slot: holder.slot });
  });
  const surely = hit.filter((holder) => !mayEnd(holder, moment));
  if (ended < surely.length || ended > hit.length + maybe.length) return null;
  if (ended <= hit.length) return without(state, (holder) => hit.includes(holder));
  // One of whom nothing is known bore it: then all that hold bear it, or have ended. (Not so where each place has its own.)
  if (state.holders.some(({ mode }) => mode === "slot")) return without(state, (holder) => hit.includes(holder));
  if (!state.holders.every((holder) => hit.includes(holder) || mayEnd(holder, moment))) return null;
  return { holders: [], newest: raised(state.newest, -1, token) };
}

/** Before all that is placed from now on. */
function mayEnd({ expiresFrom }: Holder, moment: Moment<LockOperation>): boolean {
  return expiresFrom <= moment.latestAt;
}

function without(state: LockState, isGone: (holder: Holder) => boolean): LockState {
  return state.holders.some(isGone) ? { ...state, holders: state.holders.filter((each) => !isGone(each)) } : state;
}

function raised(newest: ReadonlyMap<number, number>, place: number, token: number | null): ReadonlyMap<number, number> {
  if (token === null || token <= (newest.get(place) ?? -1)) return newest;
  return new Map([...newest, [place, token]]);
}
