/** Lies that can be told about any true history in which there is something to lie about. */
import type { Effect, EventOf, History, HistoryEvent, LogCommand, Rule } from "../src/index.js";
import { change, eventAt, insert, isOf, move, sayOf, without } from "./edits.js";

export interface Corruption {
  readonly name: string;
  /** One of these must be broken. */
  readonly rules: readonly Rule[];
  /** `pick` chooses among the places where the lie can be told. Null: there is none. */
  tell(history: History, pick: number): Lie | null;
}

export interface Lie {
  readonly history: History;
  /** Why nobody could tell it from the truth. */
  readonly harmless?: string;
}

type Kind = HistoryEvent["kind"];
type Edit<K extends Kind> = (event: EventOf<K>, history: History, position: number) => History | Lie | null;

/** At one event of a kind. */
function at<K extends Kind>(name: string, rules: readonly Rule[], kind: K, edit: Edit<K>): Corruption {
  return {
    name,
    rules,
    tell(history, pick) {
      const places = history.events.flatMap((event, position) => (isOf(event, kind) ? [{ event, position }] : []));
      for (let turn = 0; turn < places.length; turn += 1) {
        const place = places[(pick + turn) % places.length];
        const lie = place === undefined ? null : edit(place.event, history, place.position);
        if (lie !== null) return "history" in lie ? lie : { history: lie };
      }
      return null;
    },
  };
}

/** All nodes say something else of one entry. */
function saying(
  name: string,
  rules: readonly Rule[],
  edit: (effects: readonly Effect[], command: LogCommand) => readonly Effect[] | null,
): Corruption {
  return at(name, rules, "committed", ({ index, entry }, history) => {
    if (entry.kind !== "command") return null;
    const { command } = entry;
    const report = history.events.find(
      (event) => isOf(event, "applied") && event.index === index && event.effects !== null,
    );
    if (report === undefined || !isOf(report, "applied") || report.effects === null) return null;
    return edit(report.effects, command) === null
      ? null
      : sayOf(history, index, (effects) => edit(effects, command) ?? effects);
  });
}

/** Without the first that fits; null when none does. */
function dropping(effects: readonly Effect[], test: (effect: Effect) => boolean): readonly Effect[] | null {
  const position = effects.findIndex(test);
  return position < 0 ? null : effects.toSpliced(position, 1);
}

/** With another in the place of the first for which there is one. */
function replacing(effects: readonly Effect[], edit: (effect: Effect) => Effect | null): readonly Effect[] | null {
  for (const [position, effect] of effects.entries()) {
    const other = edit(effect);
    if (other !== null) return effects.with(position, other);
  }
  return null;
}

/** How the wait of a request other than the entry's own ended: by a grant. */
function isWaitersGrant(effect: Effect, command: LogCommand): boolean {
  if (effect.kind !== "outcome" || effect.outcome.kind !== "granted") return false;
  return !("request" in command) || command.session !== effect.session || command.request !== effect.request;
}

function clientOf(history: History, call: number): string | null {
  const found = history.events.find((event) => isOf(event, "call") && event.call === call);
  return found !== undefined && isOf(found, "call") ? found.client : null;
}

const ofMachines: readonly Corruption[] = [
  saying("a token one too high", ["generation-token", "one-effect"], (effects) =>
    replacing(effects, (effect) => {
      if (effect.kind !== "outcome" || effect.outcome.kind !== "granted") return null;
      const grants = effect.outcome.grants.map((grant) => ({ ...grant, token: grant.token + 1 }));
      return { ...effect, outcome: { ...effect.outcome, grants } };
    }),
  ),
  saying("a waiter forgotten", ["lost-wakeup"], (effects, command) =>
    dropping(effects, (effect) => isWaitersGrant(effect, command)),
  ),
  saying("a silence miscounted", ["replay"], (effects) =>
    replacing(effects, (effect) => (effect.kind === "silence" ? { ...effect, count: effect.count + 1 } : null)),
  ),
  saying("an expiry that ends nothing", ["replay"], (effects) =>
    replacing(effects, (effect) => {
      const isExpiry = effect.kind === "sessionEnded" && effect.reason === "expired";
      return isExpiry ? { kind: "expiryRefused", session: effect.session } : null;
    }),
  ),
  saying("a loss untold", ["replay", "one-effect"], (effects) =>
    dropping(effects, (effect) => effect.kind === "outcome" && effect.outcome.kind === "lost"),
  ),
  saying("a lock-delay untold", ["lock-delay"], (effects) =>
    dropping(effects, ({ kind }) => kind === "lockDelayBegan"),
  ),
  saying("a lock-delay too short", ["lock-delay"], (effects) =>
    replacing(effects, (effect) =>
      effect.kind === "lockDelayBegan" ? { ...effect, delayMs: effect.delayMs - 1 } : null,
    ),
  ),
  saying("a release that found nothing", ["replay", "one-effect"], (effects, command) =>
    replacing(effects, (effect) => {
      const isReleased = effect.kind === "outcome" && effect.outcome.kind === "released";
      return isReleased && command.kind === "release" ? { ...effect, outcome: { kind: "notHeld" } } : null;
    }),
  ),
  saying("a force miscounted", ["replay"], (effects) =>
    replacing(effects, (effect) => (effect.kind === "forced" ? { ...effect, ended: effect.ended + 1 } : null)),
  ),
  saying("a wait that should be a grant", ["lost-wakeup", "one-effect"], (effects, command) =>
    replacing(effects, (effect) => {
      if (effect.kind !== "outcome" || effect.outcome.kind !== "granted" || command.kind !== "acquire") return null;
      return isWaitersGrant(effect, command) ? null : { ...effect, outcome: { kind: "waiting" } };
    }),
  ),
  saying("a grant that should be a wait", ["exclusion", "fifo", "lock-delay", "one-effect"], (effects, command) =>
    replacing(effects, (effect) => {
      if (effect.kind !== "outcome" || effect.outcome.kind !== "waiting" || command.kind !== "acquire") return null;
      const slot = command.mode === "slot" ? 0 : null;
      const grants = command.names.map((name) => ({ name, token: 1_000_000, slot }));
      return { ...effect, outcome: { kind: "granted", grants, maxHoldMs: command.maxHoldMs } };
    }),
  ),
];

const ofNodes: readonly Corruption[] = [
  at("another entry applied", ["agreement"], "applied", (_, history, position) =>
    change(history, "applied", position, () => ({ hash: "lie" })),
  ),
  at("another state", ["agreement"], "applied", ({ index, node, stateHash }, history, position) => {
    const others = history.events.filter(
      (event) => isOf(event, "applied") && event.index === index && event.node !== node,
    );
    if (others.length === 0 || stateHash === null) return null;
    return change(history, "applied", position, () => ({ stateHash: "lie" }));
  }),
  at("an entry passed over", ["agreement"], "applied", ({ node }, history, position) => {
    const next = history.events.find((event, other) => {
      return (
        other > position &&
        (isOf(event, "applied") || isOf(event, "started") || isOf(event, "installed")) &&
        event.node === node
      );
    });
    return next !== undefined && isOf(next, "applied") ? without(history, position) : null;
  }),
  at("a hole in the log", ["well-formed"], "committed", (_, history, position) => without(history, position)),
  at("a second leader", ["election-safety"], "leader", ({ at: now, term }, history, position) =>
    insert(history, position, { at: now, kind: "leader", node: "n9", term }),
  ),
  at("another end", ["convergence"], "final", (_, history, position) =>
    change(history, "final", position, () => ({ stateHash: "lie" })),
  ),
  at("a clock of another term", ["stale-proposal"], "committed", ({ decidedInTerm }, history, position) =>
    decidedInTerm === null
      ? null
      : change(history, "committed", position, () => ({ decidedInTerm: decidedInTerm + 1 })),
  ),
  at(
    "a keepalive not read",
    ["split-brain-keepalive"],
    "keepaliveReceived",
    ({ session, number, node }, history, position) => {
      const isAcknowledged = history.events.some(
        (event) =>
          isOf(event, "keepaliveAcknowledged") &&
          event.session === session &&
          event.number === number &&
          event.node === node,
      );
      const lie = without(history, position);
      // With the only receipt of all the evidence goes.
      if (!lie.events.some(({ kind }) => kind === "keepaliveReceived")) return null;
      return isAcknowledged ? lie : { history: lie, harmless: "nobody vouched for it" };
    },
  ),
  at("a word of a former leader", ["split-brain-keepalive"], "keepaliveAcknowledged", (event, history, position) => {
    const { session, number, term } = event;
    if (term < 2) return null;
    const sent = history.events.findIndex(
      (each) => isOf(each, "keepaliveSent") && each.session === session && each.number === number,
    );
    const began = history.events.findIndex((each) => isOf(each, "serving") && each.term > 1);
    const lie = change(history, "keepaliveAcknowledged", position, () => ({ term: 1 }));
    return began < sent ? lie : { history: lie, harmless: "it was sent before the next leader's clocks began" };
  }),
  at("a keepalive vouched for, and then expiry", ["early-expiry"], "committed", (event, history, position) => {
    if (event.entry.kind !== "command" || event.entry.command.kind !== "expireSessions") return null;
    const session = event.entry.command.ids[0] ?? 0;
    const common = { at: event.at, session, number: 9_999 };
    const { node } = eventAt(
      history,
      "leader",
      history.events.findLastIndex((each, other) => other < position && isOf(each, "leader")),
    );
    return insert(
      history,
      position,
      { ...common, kind: "keepaliveReceived", node, term: event.term },
      { ...common, kind: "keepaliveAcknowledged", node, term: event.term },
    );
  }),
];

const ofWords: readonly Corruption[] = [
  at("a token told too high", ["told-committed"], "told", ({ outcome }, history, position) => {
    if (outcome.kind !== "granted") return null;
    const grants = outcome.grants.map((grant) => ({ ...grant, token: grant.token + 1 }));
    return change(history, "told", position, () => ({ outcome: { ...outcome, grants } }));
  }),
  at("a token told to another", ["told-committed"], "told", ({ outcome }, history, position) =>
    outcome.kind === "granted" ? change(history, "told", position, () => ({ client: "nobody" })) : null,
  ),
  at(
    "a token told before it is committed",
    ["told-committed"],
    "told",
    ({ session, request, outcome }, history, position) => {
      if (outcome.kind !== "granted") return null;
      const index = outcome.grants[0]?.token ?? 0;
      const committed = history.events.findIndex((event) => isOf(event, "committed") && event.index === index);
      const lie = move(history, position, committed);
      return eventAt(lie, "told", committed).request === request && session > 0 ? lie : null;
    },
  ),
  at(
    "a release told that never was",
    ["acknowledged-lasts"],
    "told",
    ({ at: now, client, session }, history, position) =>
      insert(history, position, {
        at: now,
        kind: "told",
        client,
        session,
        request: 7_777,
        outcome: { kind: "released" },
      }),
  ),
  at("two answers", ["one-effect"], "told", (event, history, position) => {
    if (event.outcome.kind !== "released") return null;
    return insert(history, position + 1, { ...event, outcome: { kind: "notHeld" } });
  }),
  at("a session of another key", ["acknowledged-lasts"], "sessionOpened", (_, history, position) =>
    change(history, "sessionOpened", position, () => ({ key: "lie" })),
  ),
  at("a living session told dead", ["acknowledged-lasts"], "sessionOpened", (event, history, position) => {
    const { at: now, client, session } = event;
    return insert(history, position + 1, {
      at: now,
      kind: "sessionEnded",
      client,
      session,
      reason: "x",
      by: "cluster",
    });
  }),
  at("an acquire with another token", ["told-committed"], "return", ({ result }, history, position) => {
    if (result.kind !== "acquired") return null;
    const grants = result.grants.map((grant) => ({ ...grant, token: grant.token + 1 }));
    return change(history, "return", position, () => ({ result: { ...result, grants } }));
  }),
  at("a read of a holder that never was", ["linearizability"], "return", ({ result }, history, position) => {
    if (result.kind !== "inspected") return null;
    const holders = [...result.holders, { token: 5_000_000, slot: null }];
    return change(history, "return", position, () => ({ result: { kind: "inspected", holders } }));
  }),
  at(
    "a lock that is held for ever",
    ["hold-overlap", "linearizability"],
    "state",
    ({ state, call }, history, position) => {
      if (state !== "lost") return null;
      const acquire = history.events.find((event) => isOf(event, "return") && event.call === call);
      if (acquire === undefined || !isOf(acquire, "return") || acquire.result.kind !== "acquired") return null;
      const { grants, session } = acquire.result;
      const positions = history.events.flatMap((event, other) =>
        other === position || (isOf(event, "sessionEnded") && event.session === session) ? [other] : [],
      );
      const isReader = (reader: number): boolean => {
        const found = history.events.find((event) => isOf(event, "call") && event.call === reader);
        return found !== undefined && isOf(found, "call") && found.op.kind === "acquire" && found.op.mode === "shared";
      };
      const next = history.events.flatMap((event, other) => {
        if (other < position || !isOf(event, "return") || event.result.kind !== "acquired") return [];
        if (isReader(call) && isReader(event.call)) return [];
        const isExcluded = event.result.grants.some(({ name, slot, token }) => {
          return grants.some((grant) => grant.name === name && grant.slot === slot && grant.token !== token);
        });
        return isExcluded ? [{ call: event.call, at: event.at }] : [];
      });
      // Lost or released in the very moment it began: nothing was held twice.
      const isOfNoTime = (later: { call: number; at: number }): boolean =>
        history.events.some((event) => {
          if (event.at !== later.at) return false;
          if (isOf(event, "state")) return event.call === later.call;
          if (isOf(event, "crashed")) return clientOf(history, later.call) === event.process;
          return isOf(event, "call") && event.op.kind === "release" && event.op.of === later.call;
        });
      const ended = history.events.some((event) => {
        if (isOf(event, "crashed")) return clientOf(history, call) === event.process;
        if (!isOf(event, "call") || event.op.kind !== "forceRelease") return false;
        const { name, token } = event.op;
        return grants.some((grant) => grant.name === name && grant.token === token);
      });
      if (ended || (next.length > 0 && next.every(isOfNoTime))) return null;
      const lie = without(history, ...positions);
      return next.length > 0 ? lie : { history: lie, harmless: "nobody else had the lock afterwards" };
    },
  ),
  at("a verdict of the guard turned round", ["guard"], "guardWrite", ({ accepted }, history, position) =>
    change(history, "guardWrite", position, () => ({ accepted: accepted !== true })),
  ),
  at("a write by nobody", ["guard"], "guardWrite", ({ accepted }, history, position) =>
    accepted === true ? change(history, "guardWrite", position, () => ({ client: "nobody" })) : null,
  ),
  at("a call that returns twice", ["well-formed"], "return", (event, history, position) =>
    insert(history, position, event),
  ),
  at("time that falls", ["well-formed"], "told", (_, history, position) =>
    change(history, "told", position, () => ({ at: -1 })),
  ),
];

export const corruptions: readonly Corruption[] = [...ofMachines, ...ofNodes, ...ofWords];
