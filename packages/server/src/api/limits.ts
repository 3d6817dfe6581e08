/** Limits of the HTTP API, each with its reason. What a lock, a name or a session may be is wire's matter. */

export const apiLimits = {
  /** The longest acquire, 64 names of 512 bytes, fits though JSON may write a letter in six. */
  bodyBytesMax: 262_144,
  /** As long as the longest lease: what waits needs a session that lives. */
  waitMsMax: 3_600_000,
  /** Those of the client library. */
  waitMsDefault: 30_000,
  ttlMsDefault: 10_000,
  /** Locks on a page that says nothing of it: some tens of kilobytes. */
  pageLocks: 100,
  /**
   * A leader that can't reach a majority gives up within two election timeouts, and whoever waits is told. Beyond this the answer is that
   * nobody knows, so that no request stays open for ever.
   */
  answerMs: 10_000,
  /** A cancel or release that finds no room is tried again: the leader's reserve for them is empty for moments only. */
  retryMs: 500,
  /** Streams of a node. Each is a watch, and the node has room for as many with a prefix (wire). */
  streamsMax: 1_024,
  /** Proxies cut what is silent for a minute, and a socket that is gone shows only when something is written to it. */
  heartbeatMs: 15_000,
  /** What an EventSource waits before it comes back. */
  reconnectMs: 1_000,
  /** Requests about locks that are open on one socket: nobody has to pipeline, and each is a listener of the socket. */
  pipelinedMax: 4,
  /** Of an answer that is larger, a reader that takes nothing for so long is cut off: a list has some megabytes. The kernel takes the others. */
  smallBytes: 65_536,
  unreadMs: 60_000,
  /** What a client is told to wait when a cluster without a leader, or full, sends it away: an election takes about as long. */
  retryAfterSeconds: 1,
} as const;
