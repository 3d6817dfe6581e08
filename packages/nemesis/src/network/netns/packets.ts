/** Numbers that the filter and the queues of a namespace share. */

/** Of the queue's root; the filter puts packets into its classes by their priority, so no classifier of the kernel is needed. */
export const queueMajor = 1;

/** major:minor in one number, as the kernel keeps it in a packet. */
export function packetPriority(classId: number): number {
  return (queueMajor << 16) | classId;
}

/** A loss is drawn in so many parts: finer than anybody asks for. */
export const lossPartsMax = 1_000_000;

export function lossParts(fraction: number): number {
  return Math.round(fraction * lossPartsMax);
}
