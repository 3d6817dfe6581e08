/** What check and key list print. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkText } from "../../src/commands/check.js";
import { keysText } from "../../src/commands/key.js";

const claim = { resource: "doc:42", name: "doc:42", mode: "exclusive", slot: null, token: 4_711 } as const;
const lines = (...all: readonly string[]): string => `${all.join("\n")}\n`;

test("check: current, over, and what can't be trusted", () => {
  const current = checkText({ isCurrent: true, reason: null, claim, currentToken: 4_711 });
  assert.equal(current, lines("current: yes", "lock:    doc:42", "mode:    exclusive", "token:   4711"));
  const slot = { ...claim, resource: "gpu\u001b#3", name: "gpu\u001b", mode: "slot", slot: 3 } as const;
  assert.equal(
    checkText({ isCurrent: false, reason: "over", claim: slot, currentToken: 4_800 }),
    lines(
      "current:  no, that holding is over",
      "lock:     gpu\\u001b",
      "mode:     slot",
      "slot:     3",
      "token:    4711",
      "held now: with token 4800",
    ),
  );
  assert.match(checkText({ isCurrent: false, reason: "over", claim, currentToken: null }), /^held now: no$/m);
  for (const [reason, text] of [
    ["forged", /^current: no, its signature is not this cluster's: /],
    ["unknown_key", /^current: no, it is of a key that is not among/],
    ["malformed", /^current: no, it is no sequencer$/m],
  ] as const) {
    assert.match(checkText({ isCurrent: false, reason, claim: null, currentToken: null }), text);
  }
});

test("key list: the current one and the former ones, or none", () => {
  const keys = [
    { id: "0123456789abcdef", publicKey: "A".repeat(43), since: 1_200 },
    { id: "fedcba9876543210", publicKey: "B".repeat(43), since: 3 },
  ];
  assert.equal(
    keysText(keys),
    lines(
      "KEY               STATE    SINCE  PUBLIC KEY",
      `0123456789abcdef  current   1200  ${"A".repeat(43)}`,
      `fedcba9876543210  former       3  ${"B".repeat(43)}`,
    ),
  );
  assert.match(keysText([]), /signs no sequencers yet: see holdfast upgrade/);
});
