/** How many questions of each connection wait for their answers: a client may have so many open, and the leader alone takes any. */
import { limits } from "@holdfast/wire";
import type { GatewayHost } from "./gateway-host.js";
import type { ClientConnection } from "./ports.js";
import { notLeader, refuseQuery } from "./refusing.js";

export class OpenQueries {
  private readonly host: GatewayHost;
  private readonly counts = new Map<ClientConnection, number>();

  constructor(host: GatewayHost) {
    this.host = host;
  }

  /** False: it was refused. */
  admits(connection: ClientConnection, id: number): boolean {
    if (!this.host.isLeader) {
      refuseQuery(connection, id, notLeader(this.host));
      return false;
    }
    const open = this.counts.get(connection) ?? 0;
    if (open >= limits.queriesPerConnectionMax) {
      refuseQuery(connection, id, { code: "overloaded" });
      return false;
    }
    this.counts.set(connection, open + 1);
    return true;
  }

  /** Of one that was admitted. */
  end(connection: ClientConnection): void {
    const open = this.counts.get(connection) ?? 0;
    if (open > 1) this.counts.set(connection, open - 1);
    else this.counts.delete(connection);
  }

  onClosed(connection: ClientConnection): void {
    this.counts.delete(connection);
  }
}
