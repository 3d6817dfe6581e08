/** What travels in a connection: the steps of its opening, websocket frames, and the end. */

/** What a caller says with its upgrade request. */
export interface Upgrade {
  readonly path: string;
  readonly process: string;
  readonly dial: number;
  readonly secret: string | null;
}

export type Packet =
  | { readonly kind: "syn"; readonly port: number }
  | { readonly kind: "synAck" }
  | { readonly kind: "upgrade"; readonly upgrade: Upgrade }
  | { readonly kind: "accepted"; readonly process: string }
  | { readonly kind: "rejected"; readonly status: number }
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  | { readonly kind: "ping" }
  | { readonly kind: "pong" }
  | { readonly kind: "close"; readonly code: number; readonly reason: string }
  | { readonly kind: "fin" };

/** Bytes of a frame's head; near enough. */
const headBytes = 6;

export function sizeOf(packet: Packet): number {
  switch (packet.kind) {
    case "data":
      return headBytes + packet.bytes.length;
    case "close":
      return headBytes + 2 + packet.reason.length;
    case "ping":
    case "pong":
      return headBytes;
    case "upgrade":
    case "accepted":
    case "rejected":
      return 200;
    case "syn":
    case "synAck":
    case "fin":
      return 0;
  }
}
