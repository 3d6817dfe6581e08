/** Who is at the command line, for the cluster's log. */
import { hostname, userInfo } from "node:os";

export function principal(): string {
  return `${userName()}@${hostname()}`.slice(0, 80);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "?"}`; // a container's user without a name
  }
}
