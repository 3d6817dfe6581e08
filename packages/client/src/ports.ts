/**
 * What the client needs from the world. node-ports.ts implements it with timers and websockets; the simulator with a virtual clock
 * and network. Nothing else in this package looks at a clock, draws a random number or opens a socket.
 */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds with fractions; never falls. It may stand still while the machine is suspended. */
  monotonicMs(): number;
  /**
   * Milliseconds of a clock that runs through a suspend. It may be as coarse as 20 ms: the lease's margin of at least 250 ms holds
   * that, and it alone decides only after a suspend.
   */
  suspendAwareMs(): number;
  /** Calls `run` once, not before `delayMs` (finite) have passed by the monotonic clock. Doesn't keep the process alive. */
  setTimer(delayMs: number, run: () => void): Timer;
  /** Calls `run` after the code that runs now, and what waits for its promises, before more input is read. */
  defer(run: () => void): void;
  /** While true the process doesn't end by itself: a caller waits for an answer. */
  keepProcess(isKept: boolean): void;
}

export interface Random {
  /** From 0 to below 1. */
  fraction(): number;
  /** 16 unguessable bytes as 32 lower-case hex digits. */
  key(): string;
}

/** What a socket tells its owner: `onOpened` at most once, then frames and pongs, `onClosed` once at the end unless we closed it. */
export interface SocketEvents {
  onOpened(): void;
  onFrame(frame: Uint8Array): void;
  onPong(): void;
  /** `problem` is for people to read. */
  onClosed(problem: string): void;
}

export interface Socket {
  /** Drops the frame unless the socket is open. A peer that reads too slowly is cut off. */
  send(frame: Uint8Array): void;
  /** False: it can't ping, as a browser's sockets can't. Then the connection asks the node something instead. Default true. */
  readonly hasPings?: boolean;
  ping(): void;
  /** An orderly close in the background, by force if the other side doesn't answer. No event comes after it. */
  close(): void;
  /** Cuts the connection at once. No event comes after it. */
  terminate(): void;
}

export interface Transport {
  /** `endpoint` is "host:port". Never throws: what goes wrong comes as onClosed, later. */
  open(endpoint: string, events: SocketEvents): Socket;
}

export interface ClientPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly transport: Transport;
}

/** A structured logger with pino's shape. One line per state change; names of locks appear at debug level only. */
export interface Logger {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}
