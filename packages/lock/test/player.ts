/** Turns small random choices into commands that fit the state of things often enough to lead somewhere, and shrink well. */
import fc from "fast-check";
import type { Command, Effect, Mode, Outcome } from "../src/index.js";
import type { Model } from "./model.js";

const operations = [
  ["acquire", 40],
  ["release", 20],
  ["cancel", 6],
  ["retry", 8],
  ["open", 6],
  ["close", 2],
  ["setInfo", 2],
  ["suspect", 6],
  ["expire", 3],
  ["renew", 1],
  ["force", 4],
  ["endDelay", 8],
  ["endHold", 3],
  ["version", 1],
  ["key", 1],
] as const;
const names = ["a", "b", "c", "g"];
const slotsChoices = [1, 2, 2, 2, 3];

export interface Step {
  readonly op: (typeof operations)[number][0];
  readonly who: number;
  readonly pick: number;
  /** Of `names`, as bits. */
  readonly names: number;
  readonly mode: number;
  readonly wait: boolean;
  readonly delayMs: number;
  readonly maxHoldMs: number;
  readonly settling: "none" | "honest" | "wild";
  readonly gap: number;
}

export const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  op: fc.oneof(...operations.map(([op, weight]) => ({ arbitrary: fc.constant(op), weight }))),
  who: fc.nat(5),
  pick: fc.nat(40),
  names: fc.oneof(fc.constantFrom(1, 1, 2, 8), fc.integer({ min: 1, max: 15 })),
  mode: fc.nat(5),
  wait: fc.oneof({ arbitrary: fc.constant(true), weight: 6 }, { arbitrary: fc.constant(false), weight: 1 }),
  delayMs: fc.constantFrom(0, 0, 0, 0, 50, 700, 60_000),
  maxHoldMs: fc.constantFrom(0, 0, 0, 900),
  settling: fc.constantFrom<Step["settling"]>(
    ...(["none", "none", "honest", "honest", "honest", "honest", "honest", "honest", "honest", "wild"] as const),
  ),
  gap: fc.constantFrom(1, 1, 1, 7, 2 ** 33),
});

interface PlayerSession {
  readonly id: number;
  readonly key: string;
  nextRequest: number;
  /** Requests whose end has been told. */
  readonly over: Set<number>;
}

export class Player {
  readonly issued: Command[] = [];
  index = 0;
  private readonly model: Model;
  private readonly sessions: PlayerSession[] = [];

  /** `model`: the state after the last command that was played. */
  constructor(model: Model) {
    this.model = model;
  }

  /** The next entry. */
  next(step: Step): { readonly index: number; readonly command: Command } {
    this.index += step.gap;
    const command = this.commandOf(step);
    this.issued.push(command);
    return { index: this.index, command };
  }

  note(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "sessionOpened" && effect.isNew) {
        this.sessions.push({ id: effect.session, key: effect.key, nextRequest: 1, over: new Set() });
      }
      if (effect.kind !== "outcome" || !isFinal(effect.outcome)) continue;
      this.sessions.find(({ id }) => id === effect.session)?.over.add(effect.request);
    }
  }

  private commandOf(step: Step): Command {
    const living = this.sessions.filter(({ id }) => this.model.sessions.some((each) => each.id === id));
    const session = at(step.pick % 15 === 14 || living.length === 0 ? this.sessions : living, step.who);
    const wantsSession = living.length < 2 && step.pick % 2 === 0;
    if (session === undefined || wantsSession || step.op === "open") return this.open(step);
    const ids = living.filter((_, position) => ((step.pick >> (position % 5)) & 1) === 1).map(({ id }) => id);
    switch (step.op) {
      case "retry":
        return at(this.issued, step.pick) ?? this.open(step);
      case "suspect":
        return { kind: "suspectSessions", ids: [...ids, ...ids], eighths: 1 + (step.who % 4) };
      case "expire":
        return { kind: "expireSessions", ids: [...ids, 999, ...ids] };
      case "renew":
        return { kind: "renewSuspects", ids };
      case "version":
        return { kind: "setClusterVersion", version: step.pick % 4 };
      case "key": {
        const id = `key${step.pick}`;
        const current = this.model.keys[0]?.id ?? null;
        const replaces = step.who === 5 ? "key7" : current;
        return { kind: "setSigningKey", id, publicKey: `P${id}`, seed: `S${id}`, replaces, principal: "admin" };
      }
      case "force": {
        const name = at(names, step.who) ?? "a";
        const holder = at(this.model.holdersOf(name), step.pick);
        const token = holder?.acquire.grants?.find((grant) => grant.name === name)?.token ?? step.pick;
        return { kind: "forceRelease", name, token, principal: "admin", lockDelayMs: step.delayMs };
      }
      case "endDelay": {
        const delay = at(this.model.delays, step.pick);
        return {
          kind: "endLockDelay",
          name: delay?.name ?? "a",
          index: (delay?.index ?? 0) + (step.who === 5 ? 1 : 0),
        };
      }
      case "endHold": {
        const hold = at(this.model.holds(), step.pick);
        const token = (hold?.acquire.grants?.[0]?.token ?? 0) + (step.who === 5 ? 1 : 0);
        return { kind: "endHold", session: hold?.session.id ?? 7, of: hold?.number ?? 1, token };
      }
      default:
        return this.ofSession(step, step.op, session);
    }
  }

  private open(step: Step): Command {
    const key = `key${step.pick % 3 === 0 ? step.who : this.sessions.length}`;
    return { kind: "openSession", key, ttlMs: 10_000, info: step.wait ? "" : key };
  }

  private ofSession(
    step: Step,
    op: "acquire" | "release" | "cancel" | "close" | "setInfo",
    session: PlayerSession,
  ): Command {
    const request = session.nextRequest;
    session.nextRequest += step.pick === 40 ? 2 : 1;
    const base = { session: session.id, request, ...this.settling(step, session) };
    const own = this.model.requests.filter((each) => each.session.id === session.id && each.outcome === null);
    const live = at(own, step.pick)?.number;
    // Mostly of what lives, now and then of something else: over, never seen, itself.
    const of = live === undefined || step.who === 5 ? Math.max(0, request - 3 + (step.pick % 6)) : live;
    switch (op) {
      case "acquire":
        return { kind: "acquire", ...base, ...this.terms(step) };
      case "release":
        return { kind: "release", ...base, of, afterMs: step.delayMs };
      case "cancel":
        return { kind: "cancel", ...base, of };
      case "setInfo":
        return { kind: "setInfo", ...base, of, info: `info${step.pick}` };
      case "close":
        return { kind: "closeSession", ...base };
      default:
        return op satisfies never;
    }
  }

  /** "g" is a semaphore and the others are locks, but for a few requests that take them for the other kind. */
  private terms(step: Step) {
    const chosen = names.filter((_, bit) => ((step.names >> bit) & 1) === 1);
    const isMistaken = step.pick % 20 === 19;
    const isSlot = chosen.includes("g") !== isMistaken;
    const mode: Mode = isSlot ? "slot" : step.mode < 3 ? "exclusive" : "shared";
    return {
      names: isMistaken ? chosen.toReversed() : isSlot ? ["g"] : chosen,
      mode,
      slots: isSlot ? (slotsChoices[step.mode % (isMistaken ? 5 : 2)] ?? 2) + (isMistaken ? 0 : 1) : 0,
      wait: step.wait,
      lockDelayMs: step.delayMs,
      maxHoldMs: step.maxHoldMs,
      info: step.mode === 1 ? "mine" : "",
    };
  }

  private settling(step: Step, session: PlayerSession): { readonly settled: number; readonly seen: readonly number[] } {
    if (step.settling === "none") return { settled: 1, seen: [] };
    if (step.settling === "wild") return { settled: step.pick % 9, seen: [step.who, step.pick, step.pick + 1] };
    let settled = 1;
    while (session.over.has(settled)) settled += 1;
    return { settled, seen: [...session.over].filter((number) => number > settled).slice(-8) };
  }
}

/** It will not change any more. */
export function isFinal(outcome: Outcome): boolean {
  return outcome.kind !== "waiting" && outcome.kind !== "granted";
}

function at<Item>(items: readonly Item[], position: number): Item | undefined {
  return items[position % Math.max(1, items.length)];
}
