/** One request over HTTP and its answer, as the operations see it: production has a socket behind it (http-exchange.ts), tests have none. */
import type { Answer } from "./answers.js";

export interface Exchange {
  /** "address:port" of the client, for the log. */
  readonly remote: string;
  /** What stands behind the "?", as it came. */
  readonly query: string;
  /** The part of the path that its route leaves open, as it came. */
  readonly parameter: string;
  /** The JSON of its body; undefined for an operation that takes none. */
  readonly body: unknown;
  /** By its name in lower case. */
  header(name: string): string | undefined;
  /** Answers, the first time. Nothing of it is told to `onGone`. */
  answer(answer: Answer): void;
  /** A stream of events is the answer. */
  stream(): EventSink;
  /** `run` is called once if the client goes before its answer is given, or while a stream is open. One at a time. */
  onGone(run: () => void): void;
}

export interface EventSink {
  /** False: the client reads too slowly, and is cut off; `onGone` is called. */
  write(text: string): boolean;
  end(): void;
}
