import assert from "node:assert/strict";
import { check } from "../src/index.js";
import type { CheckOptions, History, Rule, Verdict } from "../src/index.js";

export function assertAccepted(history: History, options: CheckOptions = {}): Verdict {
  const verdict = check(history, options);
  assert.deepEqual(explain(history, verdict), []);
  return verdict;
}

/** For its own reason and no other. */
export function assertRejected(rule: Rule, history: History, options: CheckOptions = {}): Verdict {
  const verdict = check(history, options);
  assert.ok(!verdict.ok, `${rule}: accepted`);
  assert.deepEqual(
    [...new Set(verdict.violations.map((each) => each.rule))],
    [rule],
    explain(history, verdict).join("\n"),
  );
  assert.ok(verdict.counts.judged[rule] > 0 && verdict.counts.found[rule] >= verdict.violations.length);
  for (const { message, events } of verdict.violations) {
    assert.notEqual(message, "");
    assert.ok(events.every((position) => history.events[position] !== undefined));
  }
  return verdict;
}

function explain(history: History, { violations }: Verdict): string[] {
  return violations.map(({ rule, message, events }) => {
    return [`${rule}: ${message}`, ...events.map((at) => `  ${at} ${JSON.stringify(history.events[at])}`)].join("\n");
  });
}
