import assert from "node:assert/strict";
import { it } from "node:test";
import { hasQuorum } from "../../src/run/quorum.js";

const five = ["n1", "n2", "n3", "n4", "n5"];
const all = (): boolean => true;
const without =
  (...cuts: readonly string[]) =>
  (one: string, other: string): boolean =>
    !cuts.includes(`${one} ${other}`) && !cuts.includes(`${other} ${one}`);

it("a quorum is a majority of nodes that are up and all hear one another", () => {
  assert.equal(hasQuorum(five, all, all), true);
  assert.equal(
    hasQuorum(five, (id) => id > "n2", all),
    true,
  );
  assert.equal(
    hasQuorum(five, (id) => id > "n3", all),
    false,
  );
  assert.equal(hasQuorum(["n1", "n2", "n3"], all, without("n1 n2", "n1 n3")), true);
  assert.equal(hasQuorum(["n1", "n2", "n3"], all, without("n1 n2", "n1 n3", "n2 n3")), false);
  // n1 reaches everybody, and no two others reach each other.
  const star = five.slice(1).flatMap((one, at) => five.slice(at + 2).map((other) => `${one} ${other}`));
  assert.equal(hasQuorum(five, all, without(...star)), false);
});
