/** openapi.json as something that answers are held against, and that notes which of its answers were seen. */
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import type { IncomingHttpHeaders } from "node:http";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { ValidateFunction } from "ajv/dist/2020.js";

type Json = Readonly<Record<string, unknown>>;

interface Documented {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: Json }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Json }>>;
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly (Json & { readonly $ref?: string; readonly name?: string; readonly in?: string })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Json }>> };
  readonly responses: Readonly<Record<string, Documented & { readonly $ref?: string }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, Documented>>;
    readonly schemas: Json;
  };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The answer is a stream: what has come so far is enough when this holds. */
  readonly until?: (text: string) => boolean;
}

/** Each on a connection of its own. `endpoint`: "host:port". Redirects are answers. */
export function ask(endpoint: string, method: string, path: string, asked: Asked = {}): Promise<Answer> {
  const { headers = {}, body, until } = asked;
  return new Promise((resolve, reject) => {
    const sent = request(`http://${endpoint}${path}`, { method, headers, agent: false }, (response) => {
      let text = "";
      const end = (): void => resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      response.on("data", (data: Buffer) => {
        text += data.toString();
        if (until?.(text) !== true) return;
        end();
        sent.destroy();
      });
      response.on("error", reject);
      response.on("end", end);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const text = readFileSync(new URL("../../../openapi.json", import.meta.url), "utf8");
export const document = JSON.parse(text) as Document;

/** "GET /v1/locks/{name}", for each operation. */
export function operations(): string[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
}

export class Judge {
  private readonly ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, formats: { uri: true, binary: true } });
  private readonly compiled = new Map<string, ValidateFunction>();
  /** "GET /v1/locks 200" */
  readonly seen = new Set<string>();

  constructor() {
    this.ajv.addSchema({ $id: "document", $defs: closed(document.components.schemas) as Json });
    // It takes long enough for a node in this process to be deposed meanwhile.
    for (const name of Object.keys(document.components.schemas)) this.validatorFor(schemaOf(name));
  }

  /** Fails unless the document has this answer of this operation, with this body and these headers. */
  check(method: string, path: string, answer: Answer): void {
    const template = templateOf(path);
    const name = `${method} ${template} ${answer.status}`;
    const documented = answerOf(document.paths[template]?.[method.toLowerCase()], answer.status);
    assert.ok(documented !== undefined, `the document lacks ${name}: ${answer.text}`);
    this.seen.add(name);
    for (const [header, { required }] of Object.entries(documented.headers ?? {})) {
      if (required === true) assert.ok(header in answer.headers, `${name} has no ${header}`);
    }
    const [[media, content] = ["", null]] = Object.entries(documented.content ?? {});
    const type = (answer.headers["content-type"] ?? "").split(";", 1)[0];
    assert.equal(type, media, name);
    if (media.endsWith("json")) this.assertValid(content?.schema ?? {}, JSON.parse(answer.text), name);
    else if (media === "") assert.equal(answer.text, "", name);
    else if (media === "text/event-stream") this.checkEvents(answer.text, name);
  }

  /** Whether a request's body is one that the document allows. */
  allows(path: string, body: unknown): boolean {
    const schema = document.paths[path]?.["post"]?.requestBody?.content["application/json"]?.schema ?? {};
    return this.validatorFor(schema)(body);
  }

  /** What the document has of these paths, and nobody has seen. */
  unseen(isAsked: (path: string) => boolean): string[] {
    const all = operations().flatMap((operation) => {
      const [method = "", path = ""] = operation.split(" ");
      if (!isAsked(path)) return [];
      const { responses = {} } = document.paths[path]?.[method.toLowerCase()] ?? {};
      return Object.keys(responses).map((status) => `${operation} ${status}`);
    });
    return all.filter((name) => !this.seen.has(name));
  }

  private checkEvents(stream: string, name: string): void {
    for (const event of stream.split("\n\n").slice(0, -1)) {
      if (/^(retry: \d+|: alive)$/.test(event)) continue;
      const [, id = "", kind = "", data = ""] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(event) ?? [];
      const schema = { changes: "Changes", gap: "Gap", watching: "Gap" }[kind];
      assert.ok(schema !== undefined, `${name}: ${event}`);
      const value = JSON.parse(data) as { readonly index: number };
      this.assertValid(schemaOf(schema), value, name);
      assert.equal(value.index, Number(id));
    }
  }

  private assertValid(schema: Json, value: unknown, name: string): void {
    const validate = this.validatorFor(schema);
    assert.ok(validate(value), `${name}: ${this.ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`);
  }

  private validatorFor(schema: Json): ValidateFunction {
    const key = JSON.stringify(schema);
    const validate = this.compiled.get(key) ?? this.ajv.compile(closed(schema, "document") as Json);
    this.compiled.set(key, validate);
    return validate;
  }
}

/** The path of the document that this one is of. */
function templateOf(path: string): string {
  const plain = path.split("?", 1)[0] ?? "";
  if (plain in document.paths) return plain;
  const open = Object.keys(document.paths).filter((each) => each.includes("{"));
  return open.find((each) => plain.startsWith(each.slice(0, each.indexOf("{")))) ?? plain;
}

function answerOf(operation: Operation | undefined, status: number): Documented | undefined {
  const found = operation?.responses[status];
  const name = found?.$ref?.split("/").at(-1);
  return name === undefined ? found : document.components.responses[name];
}

function schemaOf(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

/** Readers have to put up with fields that they don't know; a node doesn't send any that the document doesn't know. */
function closed(value: unknown, base = ""): unknown {
  if (Array.isArray(value)) return value.map((each) => closed(each, base));
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    const isReference = key === "$ref" && typeof inner === "string";
    copy[key] = isReference ? inner.replace("#/components/schemas/", `${base}#/$defs/`) : closed(inner, base);
  }
  const isObject = copy["type"] === "object" && "properties" in copy && !("additionalProperties" in copy);
  if (isObject) copy["additionalProperties"] = false;
  return copy;
}
