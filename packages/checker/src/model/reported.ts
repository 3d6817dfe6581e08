/** What a node said about one entry, by subject. */
import type { Effect, Outcome } from "../log-words.js";
import { requestText, subjectOf } from "../texts.js";

export class Reported {
  readonly bySubject: Map<string, Effect> = new Map();
  /** More than one effect for a subject. */
  readonly doubled: string[] = [];

  /** Null: no node's effects are known; the model goes its own way where the rules leave a choice. */
  constructor(effects: readonly Effect[] | null) {
    for (const effect of effects ?? []) {
      const subject = subjectOf(effect);
      if (subject === null) continue;
      if (this.bySubject.has(subject)) this.doubled.push(subject);
      this.bySubject.set(subject, effect);
    }
  }

  answerTo(session: number, request: number): Effect | null {
    return this.bySubject.get(`answer ${requestText(session, request)}`) ?? null;
  }

  outcomeOf(session: number, request: number): Outcome | null {
    const answer = this.answerTo(session, request);
    return answer?.kind === "outcome" ? answer.outcome : null;
  }
}
