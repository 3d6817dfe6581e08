/** What is right in a configuration, and yet worth a word to whoever runs the node. */
import { isIP } from "node:net";
import { formatAddress, isLoopback, parseAddress } from "./address.js";
import type { Config, ConfiguredNode } from "./config.js";
import type { Logger } from "./ports.js";

/** `threadPoolSize`: libuv's. */
export function warnOfSettings(own: ConfiguredNode, config: Config, threadPoolSize: number, logger: Logger): void {
  for (const address of [own.listen.peer, own.listen.client]) {
    if (isLoopback(address.host)) continue;
    const where = formatAddress(address);
    logger.warn(
      { address: where },
      `${where} can be reached from other machines, without encryption or passwords: let a firewall guard it`,
    );
  }
  const hasNames = config.nodes.some(({ peer }) => isHostName(parseAddress(peer)?.host ?? ""));
  // Name look-ups and disk syncs share libuv's pool: four look-ups that hang would stop the disk.
  if (hasNames && threadPoolSize < 16) {
    logger.warn(
      {},
      "peers have host names: set UV_THREADPOOL_SIZE=16, so that a slow name server can't delay the disk",
    );
  }
}

function isHostName(host: string): boolean {
  return isIP(host) === 0 && host !== "localhost";
}
