/**
 * An all-seeing observer of a random run: what every node applies, what every client is told and what it believes, in true time. Knows
 * the promises, not the program. The first breach ends the run.
 */
import assert from "node:assert/strict";
import type { Effect, Grant, Mode, Outcome, ResumeView } from "@holdfast/lock";

type OutcomeEffect = Extract<Effect, { readonly kind: "outcome" }>;

export type RequestFacts =
  | { readonly kind: "acquire"; readonly names: readonly string[]; readonly mode: Mode }
  | { readonly kind: "release" | "cancel"; readonly of: number }
  | { readonly kind: "other" };

interface Request {
  readonly facts: RequestFacts;
  state: "unknown" | "waiting" | "granted" | "over";
  grants: readonly Grant[];
  /** What it ended with: every later answer is the same. */
  end: string;
}

interface Keepalive {
  readonly sentAtMs: number;
  /** Of the client's clock. */
  readonly rate: number;
}

interface Session {
  readonly id: number;
  readonly ttlMs: number;
  readonly requests: Map<number, Request>;
  /** What it held from which index on. */
  readonly history: { readonly index: number; readonly held: string }[];
  endedAtMs: number | null;
  reason: string;
  /** The newest keepalive that any node has acknowledged. */
  acknowledged: Keepalive | null;
}

interface Lock {
  holders: { readonly request: string; readonly mode: Mode; readonly token: number; readonly slot: number | null }[];
  queue: string[];
}

/** A client that takes a lock for its own: until when, by what it was told and its clock. */
export interface Belief {
  readonly user: string;
  readonly mode: Mode;
  readonly endsAtMs: () => number;
}

export class LockJudge {
  readonly beliefs = new Map<string, Map<string, Belief>>();
  /** The highest index that any client has been told. */
  toldIndex = 0;
  readonly counts = { grants: 0, waits: 0, expiries: 0, acknowledged: 0, resumed: 0, retries: 0, handovers: 0 };
  private readonly applied = new Map<number, string>();
  private lastIndex = 0;
  private readonly sessions = new Map<number, Session>();
  private readonly locks = new Map<string, Lock>();
  private readonly tokens = new Map<string, number>();
  private readonly facts = new Map<string, RequestFacts>();
  private readonly keepalives = new Map<string, Keepalive>();

  // What clients do.

  noteRequest(session: number, request: number, facts: RequestFacts): void {
    const key = keyOf(session, request);
    assert.ok(!this.facts.has(key), `a client uses the number ${key} once`);
    this.facts.set(key, facts);
  }

  noteKeepalive(session: number, number: number, sentAtMs: number, rate: number): void {
    this.keepalives.set(keyOf(session, number), { sentAtMs, rate });
  }

  /** P5: whoever held it before knows by now that it doesn't any more. */
  noteBelief(name: string, belief: Belief, nowMs: number): void {
    // Told so late that its time is over: no belief at all.
    if (belief.endsAtMs() <= nowMs) return;
    const others = this.beliefs.get(name) ?? new Map<string, Belief>();
    for (const [user, other] of others) {
      if (user === belief.user || (other.mode === "shared" && belief.mode === "shared") || belief.mode === "slot")
        continue;
      const leftMs = other.endsAtMs() - nowMs;
      assert.ok(
        leftMs <= 0,
        `P5: ${user} believes to hold ${name} for ${leftMs} ms more, and ${belief.user} was told that it holds it`,
      );
      others.delete(user);
      this.counts.handovers += 1;
    }
    others.set(belief.user, belief);
    this.beliefs.set(name, others);
  }

  dropBelief(name: string, user: string): void {
    this.beliefs.get(name)?.delete(user);
  }

  // What nodes tell.

  /** No word before its entry is committed, and none that isn't true there. */
  onOutcomeSent(session: number, request: number, index: number, outcome: Outcome): void {
    const effects = this.applied.get(index);
    assert.ok(
      effects !== undefined,
      `an answer to ${keyOf(session, request)} speaks of index ${index}, which nobody has applied`,
    );
    const own = JSON.stringify({ kind: "outcome", session, request, outcome });
    assert.ok(
      effects.includes(own),
      `the answer to ${keyOf(session, request)} is not what index ${index} says: ${own} in ${effects}`,
    );
  }

  onAcknowledged(session: number, number: number): void {
    const keepalive = this.keepalives.get(keyOf(session, number));
    assert.ok(keepalive !== undefined, `keepalive ${number} of ${session} was sent`);
    this.counts.acknowledged += 1;
    const known = this.sessions.get(session);
    assert.ok(known !== undefined, "an acknowledged session was opened");
    if (known.endedAtMs !== null && known.reason === "expired") this.checkExpiry(known, keepalive, known.endedAtMs);
    const { acknowledged } = known;
    if (acknowledged === null || keepalive.sentAtMs > acknowledged.sentAtMs) known.acknowledged = keepalive;
  }

  /** The first answer on a resumed connection is the session's state at an index that covers all that anybody was told before. */
  onResumedSent(view: ResumeView, index: number, toldBefore: number): void {
    this.counts.resumed += 1;
    assert.ok(
      index >= toldBefore,
      `a resume is answered as of ${index}, and index ${toldBefore} was told before it was sent`,
    );
    const session = this.sessions.get(view.session);
    assert.ok(session !== undefined, "a resumed session was opened");
    const at = session.history.findLast((each) => each.index <= index);
    assert.equal(heldText(view.holds), at?.held ?? "", `the holds of ${view.session} at ${index}`);
  }

  // What nodes apply.

  onApplied(node: string, index: number, effects: readonly Effect[], nowMs: number): void {
    const text = JSON.stringify(effects);
    const known = this.applied.get(index);
    if (known !== undefined) {
      assert.equal(text, known, `${node} applies index ${index} as all others do`);
      return;
    }
    assert.ok(index > this.lastIndex, "entries are applied in their order");
    this.lastIndex = index;
    this.applied.set(index, text);
    for (const effect of effects) this.onEffect(effect, index, nowMs);
  }

  /** At the end of a run, when every session has expired. */
  assertEmpty(): void {
    for (const [name, lock] of this.locks) assert.deepEqual(lock, { holders: [], queue: [] }, `${name} is free`);
    for (const session of this.sessions.values())
      assert.ok(session.endedAtMs !== null, `session ${session.id} has ended`);
  }

  private onEffect(effect: Effect, index: number, nowMs: number): void {
    if (effect.kind === "sessionOpened" && effect.isNew) {
      const { session: id, ttlMs } = effect;
      assert.equal(id, index, "a session's id is its entry's index");
      this.sessions.set(id, {
        id,
        ttlMs,
        requests: new Map(),
        history: [],
        endedAtMs: null,
        reason: "",
        acknowledged: null,
      });
    } else if (effect.kind === "outcome") {
      this.onOutcome(effect, index);
    } else if (effect.kind === "sessionEnded") {
      this.onSessionEnded(effect.session, effect.reason, nowMs);
    } else if (effect.kind === "changed" && (effect.change === "released" || effect.change === "lost")) {
      this.onHoldEnded(effect.name, effect.token, effect.slot);
    }
  }

  private onSessionEnded(id: number, reason: string, nowMs: number): void {
    const session = this.session(id);
    assert.equal(session.endedAtMs, null, "a session ends once");
    session.endedAtMs = nowMs;
    session.reason = reason;
    for (const [number, request] of session.requests) {
      assert.ok(
        request.state !== "waiting" && request.state !== "granted",
        `${keyOf(id, number)} has ended with its session`,
      );
    }
    if (reason !== "expired") return;
    this.counts.expiries += 1;
    if (session.acknowledged !== null) this.checkExpiry(session, session.acknowledged, nowMs);
  }

  /** P4, by the client's own clock. */
  private checkExpiry(session: Session, keepalive: Keepalive, endedAtMs: number): void {
    const afterMs = (endedAtMs - keepalive.sentAtMs) * keepalive.rate;
    assert.ok(
      afterMs >= session.ttlMs,
      `P4: session ${session.id} expired ${afterMs} ms after an acknowledged keepalive was sent`,
    );
  }

  private onOutcome({ session: id, request: number, outcome }: OutcomeEffect, index: number): void {
    const session = this.session(id);
    const key = keyOf(id, number);
    const facts = this.facts.get(key);
    assert.ok(facts !== undefined, `${key} was asked for by its client`);
    const known = session.requests.get(number);
    const request: Request = known ?? { facts, state: "unknown", grants: [], end: "" };
    if (known === undefined) session.requests.set(number, request);
    else this.counts.retries += 1;
    if (facts.kind === "release" && outcome.kind === "released" && request.end === "")
      this.onReleased(session, facts.of, index);
    if (facts.kind !== "acquire") this.onEnd(key, request, outcome);
    else if (outcome.kind === "waiting") this.onWaiting(key, request, facts.names);
    else if (outcome.kind === "granted") this.onGranted(session, key, request, facts, outcome.grants, index);
    else this.onAcquireEnd(session, key, request, outcome, index);
  }

  private onWaiting(key: string, request: Request, names: readonly string[]): void {
    assert.ok(
      request.state === "unknown" || request.state === "waiting",
      `P7: ${key} waits after it was ${request.state}`,
    );
    if (request.state === "waiting") return;
    request.state = "waiting";
    this.counts.waits += 1;
    for (const name of names) this.lock(name).queue.push(key);
  }

  private onGranted(
    session: Session,
    key: string,
    request: Request,
    facts: Extract<RequestFacts, { kind: "acquire" }>,
    grants: readonly Grant[],
    index: number,
  ): void {
    assert.ok(request.state !== "over", `P7: ${key} is granted after its end`);
    if (request.state === "granted") {
      assert.deepEqual(grants, request.grants, `P7: ${key} is granted twice`);
      return;
    }
    assert.equal(session.endedAtMs, null, `P1: ${key} of an ended session is granted`);
    for (const name of facts.names) {
      const [first] = this.lock(name).queue;
      assert.ok(
        first === (request.state === "waiting" ? key : undefined),
        `P8: ${key} is granted ${name} before ${first}`,
      );
      if (request.state === "waiting") this.lock(name).queue.shift();
    }
    assert.deepEqual(
      grants.map(({ name }) => name),
      facts.names,
      "all names or none",
    );
    for (const grant of grants) this.beginHold(key, facts.mode, grant, index);
    request.state = "granted";
    request.grants = grants;
    this.counts.grants += 1;
    this.noteHeld(session, index);
  }

  private beginHold(key: string, mode: Mode, { name, token, slot }: Grant, index: number): void {
    const lock = this.lock(name);
    const register = slot === null ? name : `${name}#${slot}`;
    const [other] = lock.holders;
    const isJoin = mode === "shared" && other?.mode === "shared";
    if (mode === "slot")
      assert.ok(!lock.holders.some((each) => each.slot === slot), `P1: place ${register} is held twice`);
    else assert.ok(other === undefined || isJoin, `P1: ${key} and ${other?.request} hold ${name}`);
    if (isJoin) {
      assert.equal(token, other.token, "a generation has one token");
    } else {
      assert.equal(token, index, "a token is the index of the entry that began the generation");
      assert.ok(
        token > (this.tokens.get(register) ?? 0),
        `P2: ${register} had the token ${this.tokens.get(register)} before ${token}`,
      );
      this.tokens.set(register, token);
    }
    lock.holders.push({ request: key, mode, token, slot });
  }

  private onHoldEnded(name: string, token: number, slot: number | null): void {
    const lock = this.lock(name);
    const at = lock.holders.findIndex(
      (each) => each.token === token && each.slot === slot && this.isOver(each.request),
    );
    assert.ok(at >= 0, `a hold of ${name} with token ${token} ends that was there`);
    lock.holders.splice(at, 1);
  }

  private isOver(key: string): boolean {
    const [session = 0, request = 0] = key.split("/").map(Number);
    return this.sessions.get(session)?.requests.get(request)?.state === "over";
  }

  private onReleased(session: Session, of: number, index: number): void {
    const request = session.requests.get(of);
    assert.equal(request?.state, "granted", "only what is held is released");
    if (request === undefined) return;
    request.state = "over";
    request.end = "released";
    this.noteHeld(session, index);
  }

  private onAcquireEnd(session: Session, key: string, request: Request, outcome: Outcome, index: number): void {
    if (request.state === "waiting") {
      for (const lock of this.locks.values()) lock.queue = lock.queue.filter((each) => each !== key);
    }
    const wasGranted = request.state === "granted";
    this.onEnd(key, request, outcome);
    if (wasGranted) this.noteHeld(session, index);
  }

  private onEnd(key: string, request: Request, outcome: Outcome): void {
    const text = outcome.kind === "released" ? "released" : JSON.stringify(outcome);
    assert.ok(request.end === "" || request.end === text, `P7: ${key} ended with ${request.end}, and now with ${text}`);
    request.state = "over";
    request.end = text;
  }

  private noteHeld(session: Session, index: number): void {
    const holds = [...session.requests].filter(([, { state }]) => state === "granted");
    const held = heldText(
      holds.map(([request, { grants }]) => ({ request, grants })).sort((a, b) => a.request - b.request),
    );
    const last = session.history.at(-1);
    if (last?.index === index) session.history.pop();
    session.history.push({ index, held });
  }

  private session(id: number): Session {
    const session = this.sessions.get(id);
    assert.ok(session !== undefined, `session ${id} was opened`);
    return session;
  }

  private lock(name: string): Lock {
    const known = this.locks.get(name);
    if (known !== undefined) return known;
    const lock = { holders: [], queue: [] };
    this.locks.set(name, lock);
    return lock;
  }
}

function keyOf(session: number, number: number): string {
  return `${session}/${number}`;
}

function heldText(holds: readonly { readonly request: number; readonly grants: readonly Grant[] }[]): string {
  return holds
    .map(
      ({ request, grants }) =>
        `${request}: ${grants.map(({ name, token, slot }) => `${name} ${token} ${slot}`).join(", ")}`,
    )
    .join("; ");
}
