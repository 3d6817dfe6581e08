import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeClientFrame, decodeCommand } from "@holdfast/wire";
import { AcquireFrames, firstRequest } from "../acquire-frames.js";

test("a frame is what the wire would encode, with other numbers at each use", () => {
  const frames = new AcquireFrames(7, "flood-1-", 3);
  for (const [first, settled] of [
    [firstRequest, firstRequest],
    [0x89ab_cdef, 0x89ab_cd00],
  ]) {
    const messages = decodeClientFrame(frames.bytesFor(first, settled));
    assert.equal(messages.length, 3);
    for (const [at, message] of messages.entries()) {
      assert.equal(message.kind, "command");
      const command = decodeCommand(message.payload);
      assert.equal(command.kind, "acquire");
      const name = `flood-1-${(first + at).toString(16).padStart(8, "0")}`;
      assert.deepEqual(
        [command.session, command.request, command.settled, command.names, command.wait],
        [7, first + at, settled, [name], true],
      );
    }
  }
});
