/** How a node says no. */
import type { SessionId } from "@holdfast/lock";
import type { Refusal, ServerMessage } from "@holdfast/wire";
import type { GatewayHost } from "./gateway-host.js";
import type { ClientConnection } from "./ports.js";

const nothing = { kind: "refused", session: null, request: null, id: null, key: null } as const;

export function notLeader(host: GatewayHost): Refusal {
  return { code: "not_leader", leader: host.leader };
}

/** Refuses a command of a session. */
export function refuseCommand(
  connection: ClientConnection,
  { session, request }: { readonly session: SessionId; readonly request: number },
  refusal: Refusal,
): void {
  send(connection, { ...nothing, session, request, refusal });
}

/** Refuses a resume or a keepalive. */
export function refuseSession(connection: ClientConnection, session: SessionId, refusal: Refusal): void {
  send(connection, { ...nothing, session, refusal });
}

/** Refuses a query, a forced release or a transfer. */
export function refuseQuery(connection: ClientConnection, id: number, refusal: Refusal): void {
  send(connection, { ...nothing, id, refusal });
}

export function refuseOpening(connection: ClientConnection, key: string, refusal: Refusal): void {
  send(connection, { ...nothing, key, refusal });
}

/** The connection can't be understood: it hears why, and is closed. */
export function refuseFrame(connection: ClientConnection, refusal: Refusal): void {
  send(connection, { ...nothing, refusal });
  connection.close(refusal.code === "incompatible" ? 4000 : 1007, refusal.code);
}

function send(connection: ClientConnection, message: ServerMessage): void {
  connection.send(message);
}
