import { chmodSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkSettings, formatProblems, maskSecrets } from "../../../src/settings/load.ts";
import { type Settings, settingsSchema } from "../../../src/settings/schema.ts";
import { testHome } from "./home-fixture.ts";

const TOKEN = "0123456789abcdef-token";

test("a key and a token are read from private files, without the line end", async () => {
  await using home = await testHome();
  await home.write("key", "sk-1\n");
  await home.write("sub/token", `${TOKEN}\r\n`);
  const { settings } = await home.load(
    "gateway: { tokenFile: sub/token }\nbackends: { a: { kind: openai, model: m, baseUrl: http://h/v1, apiKeyFile: key } }",
  );
  expect(settings.gateway.token).toBe(TOKEN);
  expect(settings.backends["a"]).toMatchObject({ apiKey: "sk-1" });
});

test("a secret file that others can read refuses the start, with a last good copy too (SEC-2)", async () => {
  await using home = await testHome();
  const text = "backends: { a: { kind: openai, model: m, baseUrl: http://h/v1, apiKeyFile: key } }";
  const key = await home.write("key", "sk-1");
  await home.load(text);
  for (const mode of [0o644, 0o640, 0o604, 0o660, 0o602]) {
    chmodSync(key, mode);
    const message = await home.refusal(text);
    expect(message).toContain(
      `backends.a.apiKeyFile (line 1): expected a file that only its owner can read, but ${key} has mode 0${mode.toString(8)}`,
    );
    expect(message).toContain(`run: chmod 600 ${key}`);
  }
  chmodSync(key, 0o400);
  expect((await home.load(text)).state).toBe("file");
});

test("a settings file that holds a secret and can be read by others refuses the start (SEC-2)", async () => {
  await using home = await testHome({ KEY: "sk-1" });
  const backend = (more: string) => `backends: { a: { kind: openai, model: m, baseUrl: http://h/v1, ${more} } }`;
  const exposed = [`gateway: { token: ${TOKEN} }`, backend("apiKey: sk-1"), backend("headers: { x-api-key: sk-1 }")];
  for (const text of exposed) {
    await home.load(text, 0o600);
    expect(await home.refusal(text, 0o644)).toContain(
      `a secret is written here, and expected a file that only its owner can read`,
    );
    expect(await home.refusal(text, 0o644)).toContain(`run: chmod 600 ${home.paths.settings}`);
  }
  for (const text of ["log: { level: info }", backend(`apiKey: \${KEY}`), backend("headers: { x-title: Laneway }")]) {
    expect((await home.load(text, 0o644)).state).toBe("file");
  }
});

test("an open address without a token refuses the start, with a last good copy too (NET-8)", async () => {
  await using home = await testHome();
  await home.load("");
  for (const host of ["0.0.0.0", "::", "[::]", "192.168.1.5", "assistant.example", "127.0.0.1.example"]) {
    expect(await home.refusal(`gateway: { host: "${host}" }`)).toContain(
      "gateway.host (line 1): expected a loopback address, or a token",
    );
  }
  for (const host of ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"]) {
    expect((await home.load(`gateway: { host: "${host}" }`)).state).toBe("file");
  }
});

test("an open address with an explicit token starts (NET-8)", async () => {
  await using home = await testHome();
  await home.write("token.secret", TOKEN);
  expect((await home.load(`gateway: { host: 0.0.0.0, token: ${TOKEN} }`)).state).toBe("file");
  expect((await home.load("gateway: { host: 0.0.0.0, tokenFile: token.secret }")).state).toBe("file");
  await using other = await testHome({ LANEWAY_TOKEN: TOKEN });
  expect((await other.load("gateway: { host: 0.0.0.0 }")).state).toBe("file");
});

test("a short token is refused without being shown, from the settings and from its file", async () => {
  await using home = await testHome();
  const message = await home.refusal("gateway:\n  token: hunter2");
  expect(message).toContain(
    "gateway.token (line 2): expected at least 16 characters, but got 7 characters (not shown)",
  );
  await home.write("token.secret", "hunter2");
  expect(await home.refusal("gateway:\n  tokenFile: token.secret")).toContain(
    "gateway.tokenFile (line 2): expected at least 16",
  );
  await home.write("token.secret", "\n");
  expect(await home.refusal("gateway:\n  tokenFile: token.secret")).toContain("but it is empty");
});

test("no problem shows a secret, wherever the fault is (SEC-R1)", async () => {
  await using home = await testHome({ KEY: "s3cret-in-env" });
  const faulty = [
    "gateway: { token: s3cret-1, port: x }",
    'backends: { a: { kind: openai, apiKey: [ s3cret-1 ], headers: { k: [ s3cret-2 ], l: "s3cret\\n3" } } }',
    "backends: { a: { kind: openai, apiKey: *s3cret } }",
    "backends: { a: { kind: openai, apiKey: !s3cret x } }",
    "backends: { a: { kind: openai, apiKey: @s3cret } }",
    'gateway:\n  token: "s3cret"s3cret',
    "gateway:\n  token: s3cret: s3cret",
    'gateway:\n  token: "s3cret \\s3cret"',
    "gateway:\n  token: 's3cret",
    "gateway:\n  token: |s3cret\n",
    "%s3cret\n---\n",
    `log: { level: \${KEY} }`,
    `gateway: { host: \${KEY}/ }`,
    `agents: { main: { backends: [ \${KEY} ], workspace: \${KEY}/../.. } }`,
  ];
  for (const text of faulty) {
    await home.write("laneway.yaml", text);
    const problems = checkSettings({ file: undefined, paths: home.paths, env: home.env });
    expect(problems, text).not.toEqual([]);
    expect(formatProblems(problems), text).not.toContain("s3cret");
  }
});

test("masked settings hold no secret and everything else (SEC-3)", () => {
  const secret = fc
    .string({ minLength: 16, maxLength: 40, unit: fc.constantFrom(..."QXZ789") })
    .map((text) => `S3-${text}`);
  const backend = fc.record({
    apiKey: secret,
    headers: fc.dictionary(fc.constantFrom("authorization", "x-key", "x-title"), secret),
  });
  fc.assert(
    fc.property(secret, fc.array(backend, { maxLength: 4 }), (token, backends) => {
      const named = backends.map((fields, index) => {
        return [`b${index}`, { kind: "openai", model: "qwen3", baseUrl: "http://h/v1", ...fields }] as const;
      });
      const settings: Settings = settingsSchema.parse({ gateway: { token }, backends: Object.fromEntries(named) });
      const shown = JSON.stringify(maskSecrets(settings));
      expect(shown).not.toContain("S3-");
      expect(JSON.parse(shown)).toMatchObject({ gateway: { token: "***", port: 7411 }, lanes: settings.lanes });
      for (const [name] of named)
        expect(JSON.parse(shown).backends[name]).toMatchObject({ model: "qwen3", apiKey: "***" });
      expect(settings.gateway.token).toBe(token);
    }),
  );
});
