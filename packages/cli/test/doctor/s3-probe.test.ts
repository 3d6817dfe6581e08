/** URLs of buckets, and which lifecycle rules throw fences away. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { s3Address } from "../../src/doctor/guard/s3-address.js";
import { lifecycleFinding } from "../../src/doctor/guard/s3-probe.js";
import type { Rule } from "../../src/doctor/guard/s3-probe.js";

describe("the URL of a bucket", () => {
  const place = (url: string, environment = {}): unknown => {
    const { bucket, prefix, options } = s3Address(url, environment);
    return [bucket, prefix, options["endpoint"] ?? null, options["region"] ?? null];
  };

  it("is Amazon's, or at an endpoint of the environment, or names its endpoint; the guard's prefix may follow", () => {
    assert.deepEqual(place("s3://notes"), ["notes", "holdfast/", null, null]);
    assert.deepEqual(place("s3://notes/a/b%20c/"), ["notes", "a/b c/", null, null]);
    const environment = { AWS_ENDPOINT_URL: "http://all:1", AWS_REGION: "there" };
    assert.deepEqual(place("s3://notes", environment), ["notes", "holdfast/", "http://all:1", "there"]);
    const own = { ...environment, AWS_ENDPOINT_URL_S3: "http://own:2" };
    assert.deepEqual(place("s3://notes", own), ["notes", "holdfast/", "http://own:2", "there"]);
    assert.deepEqual(place("s3+http://ceph:8080/notes"), ["notes", "holdfast/", "http://ceph:8080", "us-east-1"]);
    assert.deepEqual(place("s3+https://ceph/notes/p", own), ["notes", "p/", "https://ceph", "there"]);
  });

  it("without a bucket, with a key or with more is refused", () => {
    for (const url of [
      "s3://",
      "s3:notes",
      "s3+http://host",
      "s3+http://host/",
      "s3://id:key@notes",
      "s3://notes?x",
      "s3://notes/%ff",
    ]) {
      assert.throws(() => s3Address(url, {}), { code: "invalid_argument", exitCode: 2 }, url);
    }
  });
});

describe("a lifecycle rule", () => {
  const rule = (more: Rule): Rule => ({ ID: "r", Status: "Enabled", Expiration: { Days: 3 }, ...more });
  const severity = (more: Rule | null): string =>
    lifecycleFinding(more === null ? null : [rule(more)], "holdfast/").severity;

  it("that deletes current objects under the prefix is a problem, however it names them", () => {
    const deleting: readonly Rule[] = [
      {},
      { Prefix: "" },
      { Filter: { Prefix: "holdfast/" } },
      { Filter: { Prefix: "holdfast/doc" } },
      { Filter: { And: { Prefix: "hold" } } },
      { Expiration: { Date: new Date(0) } },
    ];
    for (const each of deleting) assert.equal(severity(each), "problem", JSON.stringify(each));
  });

  it("that is off, is for others, or deletes noncurrent versions only is none; a store that doesn't tell is no proof", () => {
    const harmless: readonly Rule[] = [
      { Status: "Disabled" },
      { Prefix: "logs/" },
      { Filter: { Tag: { Key: "a", Value: "b" } } },
      { Filter: { And: { Prefix: "holdfast/", Tags: [{}] } } },
      { Expiration: {} },
    ];
    for (const each of harmless) assert.equal(severity(each), "ok", JSON.stringify(each));
    assert.match(lifecycleFinding(null, "holdfast/").seen, /doesn't tell/);
  });
});
