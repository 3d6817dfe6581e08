/**
 * How much is read from clients. Reading a flood takes time too, and memory: a connection that has sent much is not read while that waits,
 * and of those only some are read in each turn, one after the other. TCP holds the rest back, in the sender's memory.
 */
import { Fifo } from "./fifo.js";
import type { ClientConnection } from "./ports.js";

/** Waiting of one connection: then it is not read for a while. A hundred requests; who sends less in a turn is always read. */
const waitingBytesMax = 16_384;
/** What one look at a socket that is read again may bring: Node's buffer. */
const readBytes = 65_536;
/** Read in a turn from those that send much, and waiting in all before any of them is read again: a few milliseconds of work. */
const turnBytesMax = 16 * readBytes;

interface Waiting {
  bytes: number;
  isPaused: boolean;
}

export class Intake {
  private readonly connections = new Map<ClientConnection, Waiting>();
  /** Those that are not read; the longest first. Some may be gone. */
  private readonly paused = new Fifo<ClientConnection>();
  private bytes = 0;

  /** Some wait to be read again: the next turn shall come soon. */
  get hasPaused(): boolean {
    return this.paused.length > 0;
  }

  onOpened(connection: ClientConnection): void {
    this.connections.set(connection, { bytes: 0, isPaused: false });
  }

  onClosed(connection: ClientConnection): void {
    this.bytes -= this.connections.get(connection)?.bytes ?? 0;
    this.connections.delete(connection);
  }

  /** So much was read, and waits. */
  onRead(connection: ClientConnection, bytes: number): void {
    const waiting = this.connections.get(connection);
    if (waiting === undefined) return;
    waiting.bytes += bytes;
    this.bytes += bytes;
    if (waiting.isPaused || waiting.bytes < waitingBytesMax) return;
    waiting.isPaused = true;
    connection.pause();
    this.paused.push(connection);
  }

  /** So much waits no more. */
  onTaken(connection: ClientConnection, bytes: number): void {
    const waiting = this.connections.get(connection);
    if (waiting === undefined) return;
    waiting.bytes -= bytes;
    this.bytes -= bytes;
  }

  /** At the end of a turn: those whose turn it is are read again. */
  resume(): void {
    // One at least: others may keep as much waiting for ever, each too little to be paused.
    let room = Math.max(readBytes, turnBytesMax - this.bytes);
    for (let left = this.paused.length; left > 0 && room > 0; left -= 1) {
      const connection = this.paused.shift() as ClientConnection;
      const waiting = this.connections.get(connection);
      if (waiting === undefined) continue;
      if (waiting.bytes > 0) {
        this.paused.push(connection);
        continue;
      }
      waiting.isPaused = false;
      connection.resume();
      room -= readBytes;
    }
  }
}
