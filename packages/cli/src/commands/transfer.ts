/** `holdfast transfer`: hands leadership on, before a node is taken down, say. */
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { json, plain } from "../output.js";

export function addTransferCommand(program: Command, context: Context): void {
  withCluster(program.command("transfer"))
    .description("hand leadership to another node")
    .argument("[id]", "the node; without it the most up-to-date one")
    .action(async (id: string | undefined, options: ClusterOptions) => {
      const leader = await withClient(options, context.io, (holdfast) => holdfast.transfer(id));
      if (leader === null)
        throw new CommandFailure("error", "no_quorum", "leadership was given up, and no node has taken it yet");
      if (options.json === true) context.io.out(json({ leader: leader.id }));
      else context.io.out(`${plain(leader.id)} leads\n`);
    });
}
