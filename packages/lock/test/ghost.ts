/** Promises judged by the effects alone: what was told may never be contradicted by what is told later. */
import assert from "node:assert/strict";
import type { Effect, Outcome } from "../src/index.js";
import { isFinal } from "./player.js";

interface Holding {
  readonly session: number;
  readonly request: number;
  readonly token: number;
}

export class Ghost {
  /** The newest generation of a name, or of a place of it. */
  private readonly newest: Map<string, number> = new Map();
  private readonly holdings: Map<string, Holding[]> = new Map();
  private readonly finals: Map<string, Outcome> = new Map();
  private readonly granted: Set<string> = new Set();
  /** Entries of acquires that wait, in log order. */
  private readonly waiting: Map<string, number> = new Map();
  private readonly lastGranted: Map<string, number> = new Map();
  private readonly ended: Set<number> = new Set();

  check(index: number, effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "outcome") this.onOutcome(index, effect);
      if (effect.kind === "holdBegan") {
        const id = `${effect.session}#${effect.of}`;
        assert.ok(!this.granted.has(id), `P7: ${id} was granted once already`);
        this.granted.add(id);
      }
      if (effect.kind === "sessionEnded") this.ended.add(effect.session);
      if (effect.kind === "changed" && effect.change !== "granted") this.onChanged(effect);
    }
  }

  private onOutcome(index: number, effect: Extract<Effect, { kind: "outcome" }>): void {
    const { session, request, outcome } = effect;
    const id = `${session}#${request}`;
    const former = this.finals.get(id);
    if (former !== undefined) assert.deepEqual(outcome, former, `P7: ${id} has one answer`);
    if (isFinal(outcome)) {
      this.finals.set(id, outcome);
      this.waiting.delete(id);
    } else if (outcome.kind === "waiting" && !this.waiting.has(id)) {
      this.waiting.set(id, index);
    } else if (outcome.kind === "granted" && !this.granted.has(id)) {
      assert.ok(!this.ended.has(session), `${id} is granted to a session that lives`);
      for (const { name, token, slot } of outcome.grants) {
        this.onGrant(name, slot === null ? name : `${name}/${slot}`, { session, request, token });
        this.onTurn(name, this.waiting.get(id) ?? index);
      }
      this.waiting.delete(id);
    }
  }

  /** P1 and P2: a generation begins above all before it, or its holder joins the running one. */
  private onGrant(name: string, place: string, holding: Holding): void {
    const running = this.holdings.get(place) ?? [];
    const newest = this.newest.get(place) ?? 0;
    if (running.length === 0) assert.ok(holding.token > newest, `P2: ${name}@${holding.token} after @${newest}`);
    else assert.equal(holding.token, newest, `P1: ${name} is held, and not joined`);
    this.newest.set(place, holding.token);
    this.holdings.set(place, [...running, holding]);
  }

  /** P8: grants of a name follow the order of the requests. */
  private onTurn(name: string, index: number): void {
    assert.ok(index >= (this.lastGranted.get(name) ?? 0), `P8: ${name} granted to ${index} after a later one`);
    this.lastGranted.set(name, index);
  }

  private onChanged({ name, change, token, slot }: Extract<Effect, { kind: "changed" }>): void {
    if (change !== "released" && change !== "lost") return;
    const place = slot === null ? name : `${name}/${slot}`;
    const running = this.holdings.get(place) ?? [];
    assert.ok(
      running.some((holding) => holding.token === token),
      `${place}@${token} was held`,
    );
    this.holdings.set(place, running.slice(1));
  }
}
