/** A breach planted in a healthy world, and the rule that must find it. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Index, Term } from "@holdfast/raft";
import { InvariantError } from "../src/invariants/invariant-error.js";
import type { RuleName } from "../src/invariants/invariant-error.js";
import type { World } from "./invariants-world.js";
import { healthyWorld } from "./invariants-world.js";

export const term = (value: number): Term => value as Term;
export const index = (value: number): Index => value as Index;

export function finds(rule: RuleName, world: World, pattern?: RegExp): void {
  assert.throws(
    () => world.look(),
    (error) => {
      assert.ok(error instanceof InvariantError, String(error));
      assert.equal(error.rule, rule, error.message);
      if (pattern !== undefined) assert.match(error.message, pattern);
      return true;
    },
  );
}

export function finding(rule: RuleName, name: string, breach: (world: World) => void, pattern?: RegExp): void {
  it(`${rule}: ${name}`, () => {
    const world = healthyWorld();
    breach(world);
    finds(rule, world, pattern);
  });
}

export function allowing(name: string, deed: (world: World) => void): void {
  it(`allowed: ${name}`, () => {
    const world = healthyWorld();
    deed(world);
    world.look();
  });
}
