/** From `doctor --guard https://...` to what a resource behind HTTP refuses. */
import type { Holdfast } from "@holdfast/client";
import { CommandFailure } from "../../command-failure.js";
import { withClient } from "../../context.js";
import type { ClusterOptions } from "../../context.js";
import type { Io } from "../../io.js";
import type { Finding } from "../finding.js";
import { examineHttp } from "./examine-http.js";
import type { Holding } from "./examine-http.js";
import { ask } from "./http-request.js";
import type { HttpTarget } from "./http-request.js";

export interface HttpGuardWords {
  readonly lock?: string;
  readonly method?: string;
  readonly body?: string;
}

export function isHttp(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}

/** Without a lock the cluster isn't asked for anything. */
export async function examineResource(
  url: string,
  words: HttpGuardWords,
  options: ClusterOptions,
  io: Io,
): Promise<readonly Finding[]> {
  const { lock = null } = words;
  const target = targetOf(url, words, options.timeout);
  const presented = (sequencer: string | null): ReturnType<typeof ask> => ask(target, sequencer);
  if (lock === null) return examineHttp({ ask: presented, lock, hold: null });
  return withClient(options, io, (holdfast) =>
    examineHttp({ ask: presented, lock, hold: () => held(holdfast, lock, options.timeout) }),
  );
}

function targetOf(url: string, { method = "GET", body }: HttpGuardWords, timeoutMs: number): HttpTarget {
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") {
    const problem = "--guard sends no user and no password: a resource behind HTTP is asked with the sequencer alone";
    throw new CommandFailure("usage", "invalid_argument", problem);
  }
  if (!/^[A-Z]{1,20}$/.test(method) || method === "CONNECT") {
    throw new CommandFailure("usage", "invalid_argument", "--method must be a method of HTTP in capitals, such as PUT");
  }
  return { url, method, body: body ?? null, timeoutMs };
}

async function held(holdfast: Holdfast, name: string, waitMs: number): Promise<Holding> {
  const lock = await holdfast.acquire(name, { waitMs });
  try {
    const sequencer = await lock.sequencer();
    return { token: lock.token, sequencer, release: async () => void (await lock.release()) };
  } catch (error) {
    await lock.release();
    throw error;
  }
}
