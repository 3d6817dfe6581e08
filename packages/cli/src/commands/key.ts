/** `holdfast key`: what sequencers are signed with, and how that is changed (docs/operations.md, "Keys for sequencers"). */
import type { PublicKey } from "@holdfast/client";
import type { Command } from "commander";
import { withClient, withCluster } from "../context.js";
import type { ClusterOptions, Context } from "../context.js";
import { columns, json, plain } from "../output.js";
import { principal } from "../principal.js";

export function addKeyCommand(program: Command, context: Context): void {
  const key = program.command("key").description("show and change what sequencers are signed with").helpCommand(false);
  withCluster(key.command("list"))
    .description("the public keys that sequencers are verified with")
    .action(async (options: ClusterOptions) => {
      const keys = await withClient(options, context.io, (holdfast) => holdfast.publicKeys());
      context.io.out(options.json === true ? json({ keys }) : keysText(keys));
    });
  withCluster(key.command("rotate"))
    .description("make a new key: what was signed before is still good, until 8 more have been made")
    .action(async (options: ClusterOptions) => {
      const id = await withClient(options, context.io, (holdfast) => holdfast.rotateKey({ principal: principal() }));
      context.io.out(options.json === true ? json({ key: id }) : `sequencers are signed with key ${plain(id)} now\n`);
    });
}

export function keysText(keys: readonly PublicKey[]): string {
  if (keys.length === 0) return "the cluster signs no sequencers yet: see holdfast upgrade\n";
  const rows = keys.map(({ id, publicKey, since }, at) => [
    plain(id),
    at === 0 ? "current" : "former",
    String(since),
    plain(publicKey),
  ]);
  return columns(["KEY", "STATE", "SINCE", "PUBLIC KEY"], rows);
}
