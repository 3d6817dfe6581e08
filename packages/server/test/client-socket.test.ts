import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeClientFrame } from "@holdfast/wire";
import { ClientSocket } from "../src/client-socket.js";
import type { ClientFrame, Logger } from "../src/ports.js";
import type { FrameSocket, SocketEvents } from "../src/transport.js";

const silent = (): void => undefined;
const logger: Logger = { debug: silent, info: silent, warn: silent, error: silent };
const release = { kind: "command", payload: new Uint8Array([1, 2, 3]) } as const;

/** What a client has sent waits for its turn here. */
function socketWithFrames(): {
  socket: ClientSocket;
  raw: { isOpen: boolean };
  events: SocketEvents;
  frames: ClientFrame[];
} {
  const frames: ClientFrame[] = [];
  const raw = {
    isOpen: true,
    bufferedBytes: 0,
    send: () => true,
    close: silent,
    terminate: silent,
    pause: silent,
    resume: silent,
  };
  let events: SocketEvents | null = null;
  const clock = {
    monotonicMs: () => 0,
    wallMs: () => 0,
    setTimer: () => ({ cancel: silent }),
    setImmediate: silent,
  };
  const socket = new ClientSocket(
    { id: 1, remote: "", helloMs: 1_000, bufferedBytesSlow: 1_000, bufferedBytesMax: 2_000 },
    { clock, logger },
    (given) => {
      events = given;
      return raw as unknown as FrameSocket;
    },
    { onFrame: (_, frame) => frames.push(frame), onClosed: silent, onRejected: silent, onDirty: silent },
  );
  return { socket, raw, events: events ?? assert.fail("not attached"), frames };
}

describe("what was read of a client and not handled yet", () => {
  it("counts although the client has hung up since: it may be a release", () => {
    const { raw, events, frames } = socketWithFrames();
    events.onMessage(Buffer.from(encodeClientFrame([release])));
    raw.isOpen = false;
    assert.deepEqual(frames[0]?.messages(), [release]);
  });

  for (const end of ["close", "terminate"] as const) {
    it(`is nothing after a ${end} from this side`, () => {
      const { socket, events, frames } = socketWithFrames();
      events.onMessage(Buffer.from(encodeClientFrame([release])));
      if (end === "close") socket.close(1007, "bad_frame");
      else socket.terminate("reads too slowly");
      assert.deepEqual(frames[0]?.messages(), []);
    });
  }

  it("takes room, whatever is in it", () => {
    const { events, frames } = socketWithFrames();
    events.onMessage(Buffer.from([0x90]));
    assert.deepEqual([frames[0]?.messages().length, (frames[0]?.bytes ?? 0) > 100], [0, true]);
  });
});
