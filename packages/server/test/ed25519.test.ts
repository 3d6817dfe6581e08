import assert from "node:assert/strict";
import { test } from "node:test";
import { Ed25519, keyFromSeed } from "../src/ed25519.js";

/** RFC 8032, section 7.1, test 1. */
const seed = Buffer.from("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "hex");
const publicKey = Buffer.from("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "hex");
const ofNothing =
  "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";

test("a key and a signature are those of the standard", () => {
  const key = keyFromSeed(seed);
  assert.deepEqual(key, {
    id: "21fe31dfa154a261",
    publicKey: publicKey.toString("base64url"),
    seed: seed.toString("base64url"),
  });
  assert.equal(Buffer.from(new Ed25519().sign("", key.seed)).toString("hex"), ofNothing);
});

test("a signature is of its text and its key alone", () => {
  const own = keyFromSeed(seed);
  const other = keyFromSeed(Buffer.alloc(32, 1));
  const ed25519 = new Ed25519();
  const signature = ed25519.sign("a text", own.seed);
  assert.notDeepEqual(ed25519.sign("a text", other.seed), signature);
  // In turns: what is kept of one key must not serve the other.
  for (let round = 0; round < 2; round += 1) {
    assert.equal(ed25519.verify("a text", signature, own.publicKey), true);
    assert.equal(ed25519.verify("a text", signature, other.publicKey), false);
    assert.equal(ed25519.verify("a test", signature, own.publicKey), false);
  }
});
