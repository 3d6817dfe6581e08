/** The clock of the exploration. Whole numbers: nothing is rounded. */

/** What the session is granted. */
export const ttlMs = 800;
/** An eighth of it by the leader's clock, which waits 1 % longer. For the client its lease lasts eight of them: the clocks' rates may differ. */
export const unitMs = 101;
export const ttlUnits = 8;
