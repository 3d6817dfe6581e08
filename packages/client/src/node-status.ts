/** Asks one node how it is, over a connection of its own: also one that doesn't lead, or knows no leader. */
import type { NodeStatus, Refusal } from "@holdfast/wire";
import { Connection } from "./connection.js";
import type { ConnectionOptions } from "./connection.js";
import { connectionClosed, errorFor, HoldfastError } from "./errors.js";
import type { ClientPorts } from "./ports.js";

/** One node's answer, or why there is none. */
export type NodeReport =
  | { readonly endpoint: string; readonly status: NodeStatus; readonly error: null }
  | { readonly endpoint: string; readonly status: null; readonly error: HoldfastError };

/** Never rejects. While it is under way `enders` holds what ends it, for a client that is closed. */
export function reportOf(
  options: ConnectionOptions,
  ports: ClientPorts,
  timeoutMs: number,
  enders: Set<() => void>,
): Promise<NodeReport> {
  const { endpoint } = options;
  return new Promise((resolve) => {
    const end = (status: NodeStatus | null, error: HoldfastError | null): void => {
      enders.delete(onClientClosed);
      timer.cancel();
      connection.close();
      if (status !== null) resolve({ endpoint, status, error: null });
      else resolve({ endpoint, status, error: error ?? unreachable(endpoint, "no answer") });
    };
    const onClientClosed = (): void => end(null, connectionClosed());
    enders.add(onClientClosed);
    const refused = (problem: string, refusal: Refusal | null): void =>
      end(null, refusal === null ? unreachable(endpoint, problem) : errorFor(refusal));
    const connection = new Connection(options, ports, {
      onClaim: () => connection.send({ kind: "query", id: 1, query: { kind: "status" } }),
      onMessage: (_, message) => {
        if (message.kind === "answer" && message.result.kind === "status") end(message.result.status, null);
        else if (message.kind === "refused") end(null, errorFor(message.refusal));
      },
      onNodes: () => undefined,
      onSilent: () => undefined,
      onClosed: (_, problem, refusal) => refused(problem, refusal),
    });
    const timer = ports.clock.setTimer(timeoutMs, () => refused(`no answer within ${timeoutMs} ms`, null));
  });
}

function unreachable(endpoint: string, problem: string): HoldfastError {
  return new HoldfastError("unreachable", `${endpoint}: ${problem}`);
}
