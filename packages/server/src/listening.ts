/** Listening on an address, with one clear sentence when that fails. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { formatAddress } from "./address.js";
import type { Address } from "./address.js";

/** The address can't be listened on: in use, not of this machine, or not allowed. */
export class ListenError extends Error {
  readonly address: Address;

  constructor(address: Address, purpose: string, cause: NodeJS.ErrnoException) {
    super(sentenceFor(address, purpose, cause), { cause });
    this.name = "ListenError";
    this.address = address;
  }
}

function sentenceFor(address: Address, purpose: string, cause: NodeJS.ErrnoException): string {
  const where = formatAddress(address);
  switch (cause.code) {
    case "EADDRINUSE":
      return `port ${address.port} for ${purpose} (${where}) is in use by another process`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `${where} for ${purpose} is no address of this machine: set listen in the configuration, or --listen-peer and --listen-client with --join`;
    case "EACCES":
      return `port ${address.port} for ${purpose} (${where}) needs a privilege that this process lacks`;
    default:
      return `can't listen on ${where} for ${purpose}: ${cause.message}`;
  }
}

/** Resolves with the port (of interest when 0 was asked for). Rejects with a ListenError. */
export function listenOn(server: Server, address: Address, purpose: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void => reject(new ListenError(address, purpose, error));
    server.once("error", onError);
    server.listen(address.port, address.host, () => {
      server.off("error", onError);
      // Accepting can fail later (no file descriptors left): those connections are lost, the node is not.
      server.on("error", () => undefined);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Stops accepting; open sockets are the caller's. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
