/** A node's log, told to whoever wants to see it. */
import type { Logger } from "@holdfast/server";

export function tellingLogger(id: string, tell: (text: string, facts: object) => void): Logger {
  const say = (level: string) => (facts: object, text: string) =>
    tell(level === "info" ? text : `${level}: ${text.replace(`${id}: `, "")}`, facts);
  return { debug: () => undefined, info: say("info"), warn: say("warn"), error: say("error") };
}
