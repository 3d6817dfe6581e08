/** Bundles a program for browsers, as the user of a bundler would: by esbuild, from what the packages export. */
import { fileURLToPath } from "node:url";
import { driver } from "../fence/drivers.js";

/** The part of esbuild that is used. */
interface Esbuild {
  build(options: object): Promise<{
    readonly outputFiles: readonly { readonly contents: Uint8Array; readonly text: string }[];
    readonly warnings: readonly { readonly text: string }[];
    readonly metafile: {
      readonly inputs: Readonly<Record<string, { readonly imports: readonly { readonly path: string }[] }>>;
    };
  }>;
}

export interface Bundle {
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly warnings: readonly string[];
  /** Files in it, from the repository's top. */
  readonly files: readonly string[];
  /** All that its files import, wherever that leads. */
  readonly imports: readonly string[];
}

const top = fileURLToPath(new URL("../../../", import.meta.url));

/** `program`: a module's text, that imports packages by their names. `external`: packages that are left out. */
export async function bundleForBrowser(program: string, external: readonly string[] = []): Promise<Bundle> {
  const { build } = driver("esbuild") as Esbuild;
  const { outputFiles, warnings, metafile } = await build({
    stdin: { contents: program, resolveDir: top },
    absWorkingDir: top,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    external: [...external],
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error("esbuild wrote nothing");
  return {
    text: output.text,
    bytes: output.contents,
    warnings: warnings.map(({ text }) => text),
    files: Object.keys(metafile.inputs),
    imports: Object.values(metafile.inputs).flatMap(({ imports }) => imports.map(({ path }) => path)),
  };
}
