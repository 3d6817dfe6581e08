import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeRefusedError, HoldfastError } from "@holdfast/client";
import { withoutMajority } from "../../src/commands/member.js";
import { failureOf } from "../../src/failures.js";
import { runCli } from "../../src/program.js";
import { MemoryIo } from "../memory-io.js";

test("what can't be a node is refused before anybody is asked, or waited for", async () => {
  const slips: readonly (readonly [string, RegExp])[] = [
    ["add N6! --peer a:1 --client a:2", /^"N6!" is no id of a node/],
    ["add n6 --peer x --client a:2", /^--peer: "x" is not an address/],
    ["replace n3 n6 --peer a:1 --client 127.0.0.1:99999", /^--client: "127.0.0.1:99999" is not an address/],
    ["add n6 --peer a:1 --client a:2 --instance zz", /^--instance: "zz" is no instance/],
  ];
  for (const [words, message] of slips) {
    const io = new MemoryIo();
    const code = await runCli(["member", ...words.split(" "), "--json", "--endpoints", "127.0.0.1:1"], io);
    const { error } = JSON.parse(io.stderr) as { readonly error: { readonly code: string; readonly message: string } };
    assert.deepEqual([code, io.stdout, error.code], [2, "", "usage"], words);
    assert.match(error.message, message);
  }
});

test("who has lost the majority is told that --force can't help, and what does", () => {
  const failure = failureOf(withoutMajority(new HoldfastError("no_quorum", "no leader was found within 4000 ms")));
  assert.deepEqual([failure.code, failure.exitCode], ["no_quorum", 1]);
  assert.match(failure.message, /^no leader was found within 4000 ms; .* with --force too: .*#lost-majority$/);
  const refused = new ChangeRefusedError("no_voters", []);
  assert.equal(withoutMajority(refused), refused);
});
