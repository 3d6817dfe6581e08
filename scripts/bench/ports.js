/** Ports for servers that are about to start. */
import { freePorts as freePortsAt } from "@holdfast/nemesis/free-ports";

/**
 * Ports that were free a moment ago, and differ.
 * @param {number} count
 */
export function freePorts(count) {
  return freePortsAt("127.0.0.1", count);
}
