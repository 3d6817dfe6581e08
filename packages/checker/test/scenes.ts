/** Beginnings that many tests share. */
import assert from "node:assert/strict";
import type { History, HistoryEvent, LogCommand } from "../src/index.js";
import { historyVersion } from "../src/index.js";
import type { AcquireCall, Client } from "./service/client.js";
import { Story } from "./service/story.js";
import type { Fact } from "./service/world.js";
import { assertAccepted } from "./verdicts.js";

export interface Scene {
  readonly story: Story;
  readonly c1: Client;
  readonly c2: Client;
  readonly first: AcquireCall;
  readonly second: AcquireCall;
}

/** c1 holds `a`, and c2 waits for it. */
export function heldAndWaiting(): Scene {
  const story = new Story();
  const c1 = story.client("c1");
  const c2 = story.client("c2");
  const first = c1.acquire(["a"]);
  story.advance(20);
  const second = c2.acquire(["a"]);
  story.advance(20);
  assert.deepEqual([first.stage, second.stage], ["held", "open"]);
  return { story, c1, c2, first, second };
}

/** c1 has died, c2 got the lock when the session of c1 had ended. */
export function passedOn(): Scene {
  const scene = heldAndWaiting();
  scene.c1.crash();
  scene.story.advance(13_000);
  assert.equal(scene.second.stage, "held");
  return scene;
}

/** Comes to rest, and is true so far. */
export function ended(story: Story): History {
  story.advance(100);
  const history = story.end();
  assertAccepted(history);
  return history;
}

export function sessionOf(client: Client): number {
  assert.ok(client.session !== null);
  return client.session.id;
}

export function tokenOf(acquire: AcquireCall): number {
  return acquire.grants[0]?.token ?? assert.fail("it is held");
}

export function alone(name: string, token: number): { name: string; token: number; slot: null }[] {
  return [{ name, token, slot: null }];
}

/** What clients alone can tell; one millisecond from event to event. */
export function ofClients(...facts: readonly Fact[]): History {
  const events: HistoryEvent[] = facts.map((fact, at) => ({ at, ...fact }));
  return { version: historyVersion, origin: "hand", nodes: [], electionTimeoutMs: null, firstIndex: 1, events };
}

/** The call of an acquire, by hand. */
export function acquire(
  call: number,
  client: string,
  name: string,
  others: { shared?: true; wait?: false } = {},
): Fact {
  const { shared, wait = true } = others;
  const mode = shared === true ? "shared" : "exclusive";
  return { kind: "call", client, call, op: { kind: "acquire", names: [name], mode, slots: 0, wait, maxHoldMs: 0 } };
}

export function acquired(call: number, name: string, token: number): Fact {
  return {
    kind: "return",
    call,
    result: { kind: "acquired", grants: alone(name, token), session: null, request: null },
  };
}

export function release(call: number, client: string, of: number): Fact {
  return { kind: "call", client, call, op: { kind: "release", of } };
}

export function released(call: number): Fact {
  return { kind: "return", call, result: { kind: "released", how: "released" } };
}

/** Events at times of one's own; the log's entries are numbered as they come. Sorted by time. */
export function timed(facts: readonly (readonly [number, Fact])[], others: Partial<History> = {}): History {
  const events: HistoryEvent[] = facts.map(([at, fact]) => ({ at, ...fact }));
  events.sort((a, b) => a.at - b.at);
  let index = 0;
  const numbered = events.map((event): HistoryEvent => {
    if (event.kind !== "committed") return event;
    index += 1;
    return { ...event, index, hash: `h${index}` };
  });
  return {
    version: historyVersion,
    origin: "hand",
    nodes: ["n1"],
    electionTimeoutMs: 100,
    firstIndex: 1,
    ...others,
    events: numbered,
  };
}

/** An entry of the log; its number is given by timed(). */
export function logged(command: LogCommand): Fact {
  return { kind: "committed", index: 0, term: 1, hash: "", decidedInTerm: null, entry: { kind: "command", command } };
}

/** In the log. */
export function acquireEntry(session: number, request: number, name: string, maxHoldMs = 0): Fact {
  const terms = { mode: "exclusive", slots: 0, wait: true, lockDelayMs: 0, maxHoldMs } as const;
  return logged({ kind: "acquire", session, request, settled: request, seen: [], names: [name], ...terms });
}
