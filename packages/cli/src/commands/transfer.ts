/** `holdfast transfer`: hands leadership on, before a node is taken down, say. */
import type { Holdfast, NodeAddress } from "@holdfast/client";
import type { Command } from "commander";
import { CommandFailure } from "../command-failure.js";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { json, plain } from "../output.js";
import { summaryOf } from "./status.js";

export function addTransferCommand(program: Command, context: Context): void {
  withCluster(program.command("transfer"))
    .description("hand leadership to another node")
    .argument("[id]", "the node; without it the most up-to-date one")
    .action(async (id: string | undefined, options: ClusterOptions) => {
      const leader = await withClient(options, context.io, (holdfast) => transfer(holdfast, id));
      if (options.json === true) context.io.out(json({ leader: leader.id }));
      else context.io.out(`${plain(leader.id)} leads\n`);
    });
}

/** The node that leads afterwards; throws when leadership was not handed on. */
export async function transfer(
  holdfast: Pick<Holdfast, "transfer" | "status">,
  to: string | undefined,
): Promise<NodeAddress> {
  const leader = await holdfast.transfer(to);
  if (leader !== null) return leader;
  // Its time is over: the old leader leads on (the other was too slow, or there is none), or nobody does for the moment.
  const reports = await holdfast.status({ timeoutMs: 1_000 });
  const now = summaryOf(reports).leader;
  const address = reports.flatMap(({ status }) => status?.nodes ?? []).find(({ id }) => id === now);
  if (address !== undefined && now === to) return address;
  const other = to === undefined ? "no other node has taken over in time" : `${plain(to)} has not taken over in time`;
  const leads = now === null ? "nobody leads now" : `${plain(now)} leads`;
  throw new CommandFailure("error", "no_quorum", `${other}: ${leads}`);
}
