import { strict as assert } from "node:assert";
import { afterEach, describe, test } from "node:test";
import { encodeClientFrame } from "@holdfast/wire";
import { WebSocket } from "ws";
import { until } from "./helpers.js";
import { endAll, hello, join, start } from "./listener-harness.js";

afterEach(endAll);

/** Resolves when a ping is answered or the socket is closed. */
function answerOf(socket: WebSocket): Promise<void> {
  return new Promise((resolve) => {
    const onAnswer = (): void => {
      socket.off("pong", onAnswer);
      socket.off("close", onAnswer);
      resolve();
    };
    socket.on("pong", onAnswer);
    socket.on("close", onAnswer);
  });
}

describe("garbage at the client port", () => {
  test("1,000 random and 1,000 mutated frames: no crash, and each is refused or well formed", async () => {
    const { url, messages, opened, closed } = await start({ connectionsMax: 10_000 });
    let state = 12_345;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const good = [
      encodeClientFrame([hello]),
      encodeClientFrame([
        { kind: "keepalive", session: 7, number: 3 },
        { kind: "resume", session: 7, key: "0".repeat(32) },
      ]),
      encodeClientFrame([{ kind: "query", id: 1, query: { kind: "list", prefix: "a", after: "", limit: 10 } }]),
    ];
    const frames: Uint8Array[] = [];
    for (let n = 0; n < 1_000; n += 1) frames.push(Uint8Array.from({ length: random(200) }, () => random(256)));
    for (let n = 0; n < 1_000; n += 1) {
      const bytes = Uint8Array.from(good[n % good.length] as Uint8Array);
      for (let flips = 0; flips <= random(3); flips += 1) bytes[random(bytes.length)] = random(256);
      frames.push(random(4) === 0 ? bytes.subarray(0, random(bytes.length)) : bytes);
    }
    let refused = 0;
    let socket = await join(url);
    for (const frame of frames) {
      if (socket.readyState !== WebSocket.OPEN) {
        refused += 1;
        socket = await join(url);
      }
      socket.send(frame, () => undefined);
      // Refused, or taken: a ping behind it tells when it has been looked at.
      socket.ping(undefined, undefined, () => undefined);
      await answerOf(socket);
    }
    assert.ok(refused > 500, `${refused} were refused`);
    for (const { message } of messages) assert.match(message.kind, /^[a-zA-Z]+$/);
    socket.terminate();
    await until(() => closed.length === opened.length, "every connection is accounted for");
    const after = await join(url);
    after.send(encodeClientFrame([hello]));
    const before = messages.length;
    await until(() => messages.length === before + 1, "and the port still works");
  });
});
