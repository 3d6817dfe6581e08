import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventText } from "../../src/commands/watch.js";

describe("a watched change", () => {
  it("is a line of index, change, lock, token and place", () => {
    const lock = { name: "doc:42", token: 4_711, slot: null, index: 4_711 } as const;
    assert.equal(eventText({ type: "granted", ...lock }), "    4711  granted      doc:42  token 4711\n");
    assert.equal(
      eventText({ type: "lost", ...lock, name: "gpu", slot: 3, index: 123_456_789 }),
      "123456789  lost         gpu  token 4711  place 3\n",
    );
    assert.equal(
      eventText({ type: "delay_ended", name: "doc:42", slot: null, index: 4_800 }),
      "    4800  delay_ended  doc:42\n",
    );
    assert.equal(eventText({ type: "gap", index: 7 }), "       7  gap          changes up to here may be missing\n");
  });

  it("can't steer a terminal", () => {
    const text = eventText({ type: "released", name: "a\u001b[2Jb", token: 1, slot: null, index: 1 });
    assert.equal(text, "       1  released     a\\u001b[2Jb  token 1\n");
  });
});
