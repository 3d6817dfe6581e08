/**
 * Acquires of one frame that are refused as overloaded, at as small a cost as can be: what they ask for is not looked at, and neighbours
 * share an answer.
 */
import { acquireIn } from "@holdfast/wire";
import type { ClientMessage } from "@holdfast/wire";
import type { ClientConnection } from "./ports.js";
import { refuseCommand } from "./refusing.js";

const overloaded = { code: "overloaded" } as const;

export class RefusedAcquires {
  private readonly connection: ClientConnection;
  private readonly takesRuns: boolean;
  private session = 0;
  private from = 0;
  /** Below `from`: none. */
  private to = -1;

  /** `takesRuns`: its client understands an answer to many. */
  constructor(connection: ClientConnection, takesRuns: boolean) {
    this.connection = connection;
    this.takesRuns = takesRuns;
  }

  /** False when it is no acquire, or one that can't be read so quickly: it is not refused then. */
  take(message: ClientMessage): boolean {
    const acquire = message.kind === "command" ? acquireIn(message.payload) : null;
    if (acquire === null) return false;
    const { session, request } = acquire;
    if (!this.takesRuns) refuseCommand(this.connection, acquire, overloaded);
    else if (session === this.session && request === this.to + 1) this.to = request;
    else {
      this.end();
      this.session = session;
      this.from = request;
      this.to = request;
    }
    return true;
  }

  /** Tells what is not told yet. */
  end(): void {
    const { session, from, to } = this;
    if (from === to) refuseCommand(this.connection, { session, request: from }, overloaded);
    else if (from < to) this.connection.send({ kind: "refusedRun", session, from, to, refusal: overloaded });
    this.to = this.from - 1;
  }
}
