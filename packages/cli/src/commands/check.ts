/** `holdfast check`: whether the holding that a sequencer speaks of goes on. */
import type { SequencerCheck } from "@holdfast/client";
import type { Command } from "commander";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { exitCodes } from "../exit-codes.js";
import { facts, json, plain } from "../output.js";

export function addCheckCommand(program: Command, context: Context): void {
  withCluster(program.command("check"))
    .description("ask whether a sequencer is of this cluster, and its holding goes on; 1 when not")
    .argument("<sequencer>", "as HOLDFAST_SEQUENCER bears it")
    .action(async (sequencer: string, options: ClusterOptions) => {
      const check = await withClient(options, context.io, (holdfast) => holdfast.check(sequencer));
      context.io.out(options.json === true ? json(check) : checkText(check));
      if (!check.isCurrent) context.setExitCode(exitCodes.error);
    });
}

const problems: Readonly<Record<NonNullable<SequencerCheck["reason"]>, string>> = {
  over: "no, that holding is over",
  forged: "no, its signature is not this cluster's: it was forged, or changed on its way",
  unknown_key: "no, it is of a key that is not among this cluster's (see holdfast key list)",
  malformed: "no, it is no sequencer",
};

export function checkText({ reason, claim, currentToken }: SequencerCheck): string {
  const current = ["current", reason === null ? "yes" : problems[reason]] as const;
  if (claim === null) return facts([current]);
  const { name, mode, slot, token } = claim;
  return facts([
    current,
    ["lock", plain(name)],
    ["mode", mode],
    ...(slot === null ? [] : [["slot", String(slot)] as const]),
    ["token", String(token)],
    ...(reason === null ? [] : [["held now", currentToken === null ? "no" : `with token ${currentToken}`] as const]),
  ]);
}
