import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeRefusedError, HoldfastError } from "@holdfast/client";
import { withoutMajority } from "../../src/commands/member.js";
import { failureOf } from "../../src/failures.js";

test("who has lost the majority is told that --force can't help, and what does", () => {
  const failure = failureOf(withoutMajority(new HoldfastError("no_quorum", "no leader was found within 4000 ms")));
  assert.deepEqual([failure.code, failure.exitCode], ["no_quorum", 1]);
  assert.match(failure.message, /^no leader was found within 4000 ms; .* with --force too: .*#lost-majority$/);
  const refused = new ChangeRefusedError("no_voters", []);
  assert.equal(withoutMajority(refused), refused);
});
