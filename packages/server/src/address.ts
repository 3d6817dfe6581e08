/** "host:port" and "[v6]:port". */
import { isIP, isIPv6 } from "node:net";

export interface Address {
  /** A host name or an IP address, without brackets. */
  readonly host: string;
  readonly port: number;
}

const addressPattern = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?)):([0-9]{1,5})$/;

/** Null when `text` is no address with a port from 1 to 65535. An IPv6 address needs its brackets. */
export function parseAddress(text: string): Address | null {
  const match = addressPattern.exec(text);
  if (match === null) return null;
  const [, v6, name, digits] = match;
  const port = Number(digits);
  if (port < 1 || port > 65535) return null;
  if (v6 !== undefined) return isIPv6(v6) ? { host: v6, port } : null;
  if (name === undefined) return null;
  // Four numbers with dots that are no IPv4 address ("300.1.1.1") would be looked up as a name and fail late.
  if (/^[0-9.]+$/.test(name) && isIP(name) !== 4) return null;
  return { host: name.toLowerCase(), port };
}

export function formatAddress(address: Address): string {
  return isIPv6(address.host) ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** True for addresses that only this machine can reach. A name other than localhost counts as reachable. */
export function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1" || host === "::ffff:127.0.0.1") return true;
  return isIP(host) === 4 && host.startsWith("127.");
}
