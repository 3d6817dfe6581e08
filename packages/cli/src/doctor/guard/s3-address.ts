/** `s3://bucket`, at Amazon or at the endpoint that the environment names, and `s3+https://host/bucket`; each with a prefix if need be. */
import { CommandFailure } from "../../command-failure.js";

export interface S3Address {
  readonly bucket: string;
  /** What the guard's keys begin with; ends with a slash unless it is empty. */
  readonly prefix: string;
  /** For the client's constructor. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Where `s3Guard` puts its objects if it isn't told otherwise. */
const usualPrefix = "holdfast/";

/** @throws CommandFailure `invalid_argument`. The URL isn't repeated: it may hold a key. */
export function s3Address(text: string, environment: Readonly<NodeJS.ProcessEnv>): S3Address {
  const url = new URL(text);
  if (url.username !== "" || url.password !== "")
    throw refusal("keys come from the environment (AWS_ACCESS_KEY_ID ...)");
  if (url.search !== "" || url.hash !== "") throw refusal("nothing can follow the prefix");
  const path = decoded(url.pathname.replace(/^\//, ""));
  const isAmazon = url.protocol === "s3:";
  const at = path.indexOf("/");
  const bucket = isAmazon ? url.hostname : at < 0 ? path : path.slice(0, at);
  const rest = isAmazon ? path : at < 0 ? "" : path.slice(at + 1);
  if (bucket === "" || url.host === "") throw refusal("a bucket is missing");
  const prefix = rest === "" ? usualPrefix : `${rest.replace(/\/$/, "")}/`;
  const endpoint = isAmazon
    ? environment["AWS_ENDPOINT_URL_S3"] || environment["AWS_ENDPOINT_URL"]
    : `${url.protocol.slice("s3+".length)}//${url.host}`;
  return { bucket, prefix, options: endpoint ? elsewhere(endpoint, environment) : {} };
}

/** Other stores have one region or none, no names of hosts for buckets, and often none of Amazon's newer checksums. */
function elsewhere(endpoint: string, environment: Readonly<NodeJS.ProcessEnv>): Record<string, unknown> {
  return {
    endpoint,
    region: environment["AWS_REGION"] || environment["AWS_DEFAULT_REGION"] || "us-east-1",
    forcePathStyle: true,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw refusal("its path can't be decoded");
  }
}

function refusal(problem: string): CommandFailure {
  const forms = "s3://bucket or s3+https://host/bucket, with /prefix if the guard has one";
  return new CommandFailure("usage", "invalid_argument", `--guard wants ${forms}: ${problem}`);
}
