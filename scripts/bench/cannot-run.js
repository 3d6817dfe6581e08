/** Something that this machine lacks, or that was asked for wrongly: a sentence for people, without a stack. */
export class CannotRun extends Error {}
