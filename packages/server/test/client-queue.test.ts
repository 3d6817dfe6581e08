import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ClientMessage } from "@holdfast/wire";
import { ClientQueue } from "../src/client-queue.js";
import type { ClientConnection, ClientFrame } from "../src/ports.js";

const connections = [1, 2, 3, 4].map(connectionOf);

describe("clients' queue", () => {
  it("gives each connection's messages in their order, each once, through any pushes and takes", () => {
    const step = fc.oneof(
      fc.record({ of: fc.nat({ max: 3 }), count: fc.integer({ min: 1, max: 200 }) }),
      fc.record({ takes: fc.integer({ min: 1, max: 6 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const queue = new ClientQueue();
        const sent = connections.map((): number[] => []);
        const got = connections.map((): number[] => []);
        const ends: { frame: number; of: number; last: number }[] = [];
        let lastId = 0;
        const take = (): boolean => {
          const share = queue.takeShare();
          if (share === undefined) return false;
          assert.ok(share.messages.length > 0 && share.messages.length <= 64);
          got[connections.indexOf(share.connection)]?.push(...share.messages.map(idOf));
          return true;
        };
        for (const each of steps) {
          if ("takes" in each) {
            for (let count = 0; count < each.takes; count += 1) take();
          } else {
            const ids = Array.from({ length: each.count }, () => ++lastId);
            sent[each.of]?.push(...ids);
            queue.push(connections[each.of] as ClientConnection, frameOf(ids.map(messageOf)));
            ends.push({ frame: queue.newestFrame, of: each.of, last: lastId });
          }
          for (const [at, { frame }] of ends.entries()) {
            const earlier = ends.slice(0, at + 1);
            assert.equal(
              queue.hasTaken(frame),
              earlier.every(({ of, last }) => got[of]?.includes(last)),
            );
          }
        }
        while (take());
        assert.ok(queue.isEmpty);
        assert.deepEqual(got, sent);
      }),
    );
  });

  it("lets a quiet connection's message overtake all but a share of each other's", () => {
    const queue = new ClientQueue();
    const [loud, louder, quiet] = connections as [ClientConnection, ClientConnection, ClientConnection];
    for (let frame = 0; frame < 100; frame += 1) {
      queue.push(loud, frameOf(messages(32)));
      queue.push(louder, frameOf(messages(4_096)));
    }
    queue.push(quiet, frameOf(messages(1)));
    const shares = Array.from({ length: 4 }, () => queue.takeShare());
    assert.deepEqual(
      shares.map((share) => [share?.connection.id, share?.messages.length]),
      [
        [1, 32],
        [2, 64],
        [3, 1],
        [1, 32],
      ],
    );
  });

  it("holds on to no frame that was taken, though it is never empty", () => {
    const queue = new ClientQueue();
    const [first] = connections as [ClientConnection];
    queue.push(first, frameOf(messages(1)));
    for (let at = 0; at < 100; at += 1) {
      queue.push(first, frameOf(messages(1)));
      queue.takeShare();
    }
    const lanes = (queue as unknown as { lanes: Map<unknown, { frames: { items: unknown[] } }> }).lanes;
    assert.equal(lanes.get(first)?.frames.items.filter((each) => each !== undefined).length, 1);
  });

  it("says once what a frame took", () => {
    const queue = new ClientQueue();
    const [first] = connections as [ClientConnection];
    queue.push(first, frameOf(messages(100)));
    queue.push(first, frameOf(messages(1)));
    assert.deepEqual(
      [1, 2, 3, 4].map(() => queue.takeShare()).map((share) => share?.bytes),
      [1_000, 0, 1_000, undefined],
    );
  });

  it("holds on to nothing of who has nothing to say", () => {
    const queue = new ClientQueue();
    for (let at = 0; at < 10_000; at += 1) queue.push(connectionOf(at), frameOf(messages(1)));
    while (queue.takeShare() !== undefined);
    assert.equal((queue as unknown as { lanes: { size: number } }).lanes.size, 0);
    assert.equal((queue as unknown as { rotation: { items: unknown[] } }).rotation.items.length, 0);
  });
});

function connectionOf(id: number): ClientConnection {
  return { id, remote: "", send() {}, pause() {}, resume() {}, close() {} };
}

function messageOf(id: number): ClientMessage {
  return { kind: "unwatch", id };
}

function idOf(message: ClientMessage): number {
  return message.kind === "unwatch" ? message.id : assert.fail(message.kind);
}

/** Decoded once, like a real one. */
function frameOf(content: readonly ClientMessage[]): ClientFrame {
  let isRead = false;
  const read = (): readonly ClientMessage[] => {
    assert.ok(!isRead);
    isRead = true;
    return content;
  };
  return { bytes: 1_000, messages: read };
}

function messages(count: number): ClientMessage[] {
  return Array.from({ length: count }, (_, id) => messageOf(id));
}
