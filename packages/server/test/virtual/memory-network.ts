/** A network for peer links without sockets: what is sent arrives a millisecond later, on the virtual clock. */
import { formatAddress } from "../../src/address.js";
import type {
  AcceptedCall,
  AcceptorOptions,
  Attach,
  DialEvents,
  DialRequest,
  FrameSocket,
  PeerTransport,
  SocketEvents,
} from "../../src/transport.js";
import type { VirtualClock } from "./virtual-clock.js";

const hopMs = 1;

interface Door {
  readonly options: AcceptorOptions;
  readonly sockets: MemorySocket[];
  onCall(call: AcceptedCall, attach: Attach): void;
}

export class MemoryNetwork {
  private readonly clock: VirtualClock;
  private readonly doors = new Map<string, Door>();

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  readonly transport: PeerTransport = {
    dial: (request, events) => {
      let isOver = false;
      this.clock.after(hopMs, () => {
        if (!isOver) this.connect(request, events);
      });
      return { cancel: () => (isOver = true) };
    },
    createAcceptor: (options, onCall) => {
      const door: Door = { options, sockets: [], onCall };
      let where = "";
      const stopListening = (): void => void this.doors.delete(where);
      return {
        listen: async (address) => {
          where = formatAddress(address);
          this.doors.set(where, door);
          return address.port;
        },
        stopListening,
        close: async () => {
          stopListening();
          for (const socket of door.sockets) socket.terminate("the port is closed");
        },
      };
    },
  };

  private connect(request: DialRequest, events: DialEvents): void {
    const door = this.doors.get(request.address);
    if (door === undefined) return events.onFailed("connectionRefused", "nobody listens there");
    if (door.options.secret !== request.secret) {
      events.onUnauthorized();
      return events.onFailed("dialFailed", "another secret");
    }
    const [caller, called] = [new MemorySocket(this.clock), new MemorySocket(this.clock)];
    caller.other = called;
    called.other = caller;
    door.sockets.push(called);
    const { lane, process, dial } = request;
    door.onCall({ lane, process, dial, remote: "memory:0" }, called.attach);
    events.onOpened(door.options.process, caller.attach);
  }
}

class MemorySocket implements FrameSocket {
  other: MemorySocket | null = null;
  isOpen = true;
  readonly bufferedBytes = 0;
  private readonly clock: VirtualClock;
  private events: SocketEvents | null = null;
  private isListening = true;

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  readonly attach: Attach = (events) => {
    this.events = events;
    return this;
  };

  send(bytes: Uint8Array): boolean {
    if (!this.isOpen) return false;
    this.clock.after(hopMs, () => this.other?.onArrived(bytes));
    return true;
  }

  close(_: number, reason: string, isListening = false): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.isListening = isListening;
    this.clock.after(hopMs, () => this.other?.end(null));
    this.clock.after(2 * hopMs, () => this.end(reason));
  }

  terminate(problem: string): void {
    this.isOpen = false;
    this.isListening = false;
    this.clock.after(0, () => this.end(problem));
    this.clock.after(hopMs, () => this.other?.end("torn down by the other side"));
  }

  // Nobody falls silent here.
  ping(): void {}
  pingIfIdle(): void {}
  pause(): void {}
  resume(): void {}
  sweep(): number {
    return 0;
  }

  private onArrived(bytes: Uint8Array): void {
    if (this.isListening) this.events?.onMessage(bytes);
  }

  private end(problem: string | null): void {
    this.isOpen = false;
    this.isListening = false;
    this.events?.onClosed(problem);
    this.events = null;
  }
}
