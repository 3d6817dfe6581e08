/** What is said between a library and the cluster, and to which call it belongs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SocketEvents, Transport } from "@holdfast/client";
import { encodeClientFrame, encodeCommand, encodeServerFrame } from "@holdfast/wire";
import { infoFor } from "../src/clients/client-tap.js";
import { ClientTap, Counts } from "../src/clients/index.js";

const grants = [{ name: "a", token: 823, slot: null }];

test("a grant to a session that its client has given up isn't the next session's", () => {
  const { tap, socket, events } = openTap();
  const acquire = { kind: "acquire", names: ["a"], mode: "shared", slots: 0, wait: true } as const;
  const asked = { ...acquire, settled: 1, seen: [], lockDelayMs: 0, maxHoldMs: 0, info: infoFor(1) };
  for (const [session, request] of [
    [5, 110],
    [799, 1],
  ] as const) {
    const payload = encodeCommand({ ...asked, session, request });
    socket.send(encodeClientFrame([{ kind: "command", payload }]));
  }
  const outcome = { kind: "granted", grants, maxHoldMs: 0 } as const;
  const hear = (session: number, request: number): void =>
    events.onFrame(encodeServerFrame([{ kind: "outcome", session, request, index: 823, outcome }]));
  hear(5, 110);
  assert.deepEqual([tap.holdOf(1, grants), tap.lastOutcomeOf(1)], [null, null]);
  hear(799, 1);
  hear(5, 110);
  assert.deepEqual(tap.holdOf(1, grants), { session: 799, request: 1 });
});

function openTap() {
  const sink = { emit: (): void => undefined };
  let heard: SocketEvents | null = null;
  const nothing = (): void => undefined;
  const transport: Transport = {
    open: (_endpoint, events) => {
      heard = events;
      return { send: nothing, ping: nothing, close: nothing, terminate: nothing };
    },
  };
  const counts = new Counts();
  const tap = new ClientTap(
    "c1",
    { transport, sink, counts },
    { onRenewed: nothing, releaseOf: () => null, closing: null },
  );
  const client = { onOpened: nothing, onFrame: nothing, onPong: nothing, onClosed: nothing };
  const socket = tap.open("n1:1", client);
  assert.ok(heard !== null);
  const events: SocketEvents = heard;
  return { tap, socket, events };
}
