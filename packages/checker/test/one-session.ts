/** One session of one client at one leader, for tests that look at single milliseconds. */
import { logged } from "./scenes.js";
import type { Fact } from "./service/world.js";

export type Facts = readonly (readonly [number, Fact])[];

export const ttlMs = 10_000;
export const open = logged({ kind: "openSession", key: "k", ttlMs });
export const opened: Fact = { kind: "sessionOpened", client: "c1", session: 1, key: "k", ttlMs };
export const elected: Fact = { kind: "leader", node: "n1", term: 1 };

export function keepalive(number: number, sentAt: number, readAt: number, knownAt: number): Facts {
  const common = { session: 1, number };
  return [
    [sentAt, { kind: "keepaliveSent", client: "c1", ...common }],
    [readAt, { kind: "keepaliveReceived", node: "n1", term: 1, ...common }],
    [readAt, { kind: "keepaliveAcknowledged", node: "n1", term: 1, ...common }],
    [knownAt, { kind: "keepaliveTold", client: "c1", ...common }],
  ];
}

export function rate(process: string, value: number): Fact {
  return { kind: "clockRate", process, rate: value };
}
