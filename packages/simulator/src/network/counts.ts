/** How often each of the network's faults has bitten. */

export interface NetworkCounts {
  framesDelivered: number;
  /** Frames and signs of a connection that reached a cut and had to wait. */
  framesHeld: number;
  /** Frames that were sent and never arrived, because their socket died. */
  framesLost: number;
  /** Frames that were read from an older socket after a newer one of the same caller and lane had opened. */
  lateDrains: number;
  retransmissions: number;
  /** Frames that came once more. */
  repeats: number;
  throttledBytes: number;
  slowedFrames: number;
  resets: number;
  /** Resets that ran into a cut: the other end stays half-open. */
  resetsLost: number;
  /** Frames to a socket that is not known any more. */
  strayFrames: number;
  dials: number;
  refusedDials: number;
  hungDials: number;
  rejectedDials: number;
  graceEnds: number;
  /** Ends that died without a word, with their machine. */
  halfOpen: number;
  /** A process stopped reading a socket, and went on. */
  readsPaused: number;
  readsResumed: number;
  /** Sockets that were torn down because of what piled up in them: towards a peer, and from a client. */
  peerBuffersFull: number;
  clientBuffersFull: number;
}

export function createCounts(): NetworkCounts {
  return {
    framesDelivered: 0,
    framesHeld: 0,
    framesLost: 0,
    lateDrains: 0,
    retransmissions: 0,
    repeats: 0,
    throttledBytes: 0,
    slowedFrames: 0,
    resets: 0,
    resetsLost: 0,
    strayFrames: 0,
    dials: 0,
    refusedDials: 0,
    hungDials: 0,
    rejectedDials: 0,
    graceEnds: 0,
    halfOpen: 0,
    readsPaused: 0,
    readsResumed: 0,
    peerBuffersFull: 0,
    clientBuffersFull: 0,
  };
}
