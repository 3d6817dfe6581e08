/** A node that takes no clients says at /readyz why: it is starting, it is stopping, or its cluster is not formed yet. */
import { HoldfastError } from "@holdfast/client";
import { GetError, getJson } from "@holdfast/server/http-get";

const readinessMs = 1_000;
/** "host:port: Unexpected server response: 503", in the list that an error has as its cause. */
const unreadyPattern = /^(.+): Unexpected server response: 503$/;

/** The same error with the nodes' own words in it, where they have any. */
export async function withReadiness(error: HoldfastError): Promise<HoldfastError> {
  if (error.code !== "unreachable") return error;
  const problems = (error.cause instanceof Error ? error.cause.message : error.message).split("; ");
  if (!problems.some((problem) => unreadyPattern.test(problem))) return error;
  const told = await Promise.all(problems.map(readinessIn));
  if (!(error.cause instanceof Error)) return new HoldfastError(error.code, told.join("; "));
  const message = error.message.replace("was reached", "was ready");
  return new HoldfastError(error.code, message, { cause: new Error(told.join("; ")) });
}

async function readinessIn(problem: string): Promise<string> {
  const endpoint = unreadyPattern.exec(problem)?.[1];
  if (endpoint === undefined) return problem;
  try {
    await getJson(endpoint, "/readyz", { timeoutMs: readinessMs });
    return problem; // it has become ready meanwhile
  } catch (error) {
    if (error instanceof GetError && error.kind === "refused") return `${endpoint}: ${error.message}`;
    return problem; // it has gone meanwhile, or is no node
  }
}
