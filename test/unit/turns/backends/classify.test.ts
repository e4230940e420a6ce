import { APICallError } from "@ai-sdk/provider";
import { expect, describe as group, test } from "vitest";
import { classifyFailure, type Endpoint } from "../../../../src/turns/backends/classify.ts";

const KEY = "sk-proj-4f9aQ7xLm2Zt8Kc1";
const endpoint: Endpoint = {
  baseUrl: "http://user:hunter2@127.0.0.1:11434/v1",
  model: "qwen3",
  hasKey: true,
  secrets: [KEY],
};

function callError(statusCode: number, body: unknown = "", responseHeaders: Record<string, string> = {}): APICallError {
  const responseBody = typeof body === "string" ? body : JSON.stringify(body);
  return new APICallError({
    message: "call",
    url: "http://x",
    requestBodyValues: {},
    statusCode,
    responseBody,
    responseHeaders,
  });
}

/** As Node's fetch throws it. */
function fetchError(code: string): TypeError {
  return new TypeError("fetch failed", { cause: Object.assign(new Error("connect"), { code }) });
}

const classOf = (thrown: unknown) => classifyFailure(thrown, endpoint).class;

group("the class of a failed call (Q5.1)", () => {
  test.each([
    [400, "invalid"],
    [401, "auth"],
    [402, "billing"],
    [403, "auth"],
    [404, "invalid"],
    [405, "invalid"],
    [408, "timeout"],
    [409, "server"],
    [413, "context-overflow"],
    [422, "invalid"],
    [425, "server"],
    [429, "rate-limit"],
    [500, "server"],
    [501, "server"],
    [502, "overloaded"],
    [503, "overloaded"],
    [504, "overloaded"],
    [520, "server"],
    [524, "timeout"],
    [529, "overloaded"],
  ])("HTTP %i without a readable body is %s", (status, expected) => {
    expect(classOf(callError(status, "<html>proxy</html>"))).toBe(expected);
    expect(classifyFailure(callError(status), endpoint)).toMatchObject({ class: expected, status });
  });

  test.each([
    [
      "OpenAI's used-up quota, which comes as 429",
      429,
      { error: { code: "insufficient_quota", type: "insufficient_quota" } },
      "quota",
    ],
    ["OpenAI's rate limit", 429, { error: { code: "rate_limit_exceeded", type: "tokens" } }, "rate-limit"],
    [
      "OpenAI's full context",
      400,
      { error: { code: "context_length_exceeded", type: "invalid_request_error" } },
      "context-overflow",
    ],
    ["llama.cpp's full context", 400, { error: { code: 400, type: "exceed_context_size_error" } }, "context-overflow"],
    [
      "a prompt that is too large for the plan, with a rate limit code",
      413,
      { error: { code: "rate_limit_exceeded" } },
      "context-overflow",
    ],
    ["OpenAI's refused key", 401, { error: { code: "invalid_api_key", type: "invalid_request_error" } }, "auth"],
    ["a quota that comes as 401", 401, { error: { code: "insufficient_quota" } }, "quota"],
    ["a spent budget", 403, { error: { code: "billing_hard_limit_reached" } }, "billing"],
    [
      "Azure's content filter",
      400,
      { error: { code: "content_filter", innererror: { code: "ResponsibleAIPolicyViolation" } } },
      "refusal",
    ],
    ["Anthropic's overload", 529, { type: "error", error: { type: "overloaded_error" } }, "overloaded"],
    ["Google's list of one error", 429, [{ error: { code: 429, status: "RESOURCE_EXHAUSTED" } }], "rate-limit"],
    ["vLLM's flat error", 400, { object: "error", type: "BadRequestError", code: 400, message: "no" }, "invalid"],
    ["an overload in a 500", 500, { error: { type: "server_overloaded" } }, "overloaded"],
  ])("%s", (_, status, body, expected) => {
    expect(classOf(callError(status, body))).toBe(expected);
  });

  test.each([
    ["an overload", { message: "x", type: "overloaded_error" }, "overloaded"],
    ["a quota", { message: "x", code: "insufficient_quota" }, "quota"],
    ["a status as number", { message: "x", code: 502 }, "overloaded"],
    ["a status as text", { message: "x", code: "429" }, "rate-limit"],
    ["a rate limit by type only", { message: "x", type: "requests" }, "rate-limit"],
    ["an invalid request", { message: "x", type: "invalid_request_error" }, "invalid"],
    ["nothing but a text", { message: "model crashed" }, "server"],
    ["a bare text", "model crashed", "server"],
    ["null", null, "server"],
  ])("an error inside the stream that states %s", (_, error, expected) => {
    expect(classOf(error)).toBe(expected);
  });

  test.each([
    ["ECONNREFUSED", "network"],
    ["ECONNRESET", "network"],
    ["ENOTFOUND", "network"],
    ["EAI_AGAIN", "network"],
    ["EPIPE", "network"],
    ["UND_ERR_SOCKET", "network"],
    ["HPE_INVALID_CONSTANT", "network"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "network"],
    ["ETIMEDOUT", "timeout"],
    ["UND_ERR_CONNECT_TIMEOUT", "timeout"],
    ["UND_ERR_HEADERS_TIMEOUT", "timeout"],
    ["UND_ERR_BODY_TIMEOUT", "timeout"],
    ["ERR_INVALID_URL", "invalid"],
  ])("the system error %s is %s, however deep it lies", (code, expected) => {
    expect(classOf(fetchError(code))).toBe(expected);
    expect(classOf(new Error("outer", { cause: fetchError(code) }))).toBe(expected);
  });

  test("a text never decides: an answer or a tool's output that speaks of billing is no billing error (Q5.7)", () => {
    const text = "402 Payment Required: insufficient_quota, rate limit exceeded, ECONNREFUSED, context_length_exceeded";
    expect(classOf(callError(400, { error: { message: text } }))).toBe("invalid");
    expect(
      classOf(callError(500, { error: { message: text }, output: { error: { code: "insufficient_quota" } } })),
    ).toBe("server");
    expect(classOf(new Error(text))).toBe("invalid");
    expect(classOf({ message: text })).toBe("server");
  });

  test.each([
    ["prompt is too long: 210000 tokens > 200000 maximum", "context-overflow"],
    ["input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000", "context-overflow"],
    ["Your credit balance is too low to access the Anthropic API.", "billing"],
    ["You have reached your specified API usage limits. You will regain access on 2026-01-01.", "quota"],
    ["messages.3: prompt is too long", "invalid"],
    ["tool said: Your credit balance is too low", "invalid"],
  ])(
    "of Anthropic's requests that it will not take, the server's own first words tell the cause: %s",
    (message, expected) => {
      const body = (type: string) => ({ type: "error", error: { type, message } });
      expect(classOf(callError(400, body("invalid_request_error")))).toBe(expected);
      expect(classOf(callError(400, body("something_else")))).toBe("invalid");
      expect(classOf(callError(500, body("invalid_request_error")))).toBe("server");
      expect(classOf(body("invalid_request_error"))).toBe("invalid");
    },
  );

  test("a code in the details of an error goes before its type", () => {
    const error = { type: "invalid_request_error", message: "m", details: { error_code: "insufficient_credits" } };
    expect(classOf(callError(400, { type: "error", error }))).toBe("billing");
  });

  test("a body of any form is survived", () => {
    for (const body of ["", "{", "null", "[]", "[1]", "7", '{"error":7}', '{"error":null}', '{"error":{"code":{}}}']) {
      expect(classOf(callError(500, body))).toBe("server");
    }
    const loop = new Error("loop");
    loop.cause = loop;
    for (const thrown of [undefined, 7, [], () => {}, Symbol("x"), loop]) expect(() => classOf(thrown)).not.toThrow();
  });
});

group("the wait that the other side asked for", () => {
  const waitOf = (headers: Record<string, string>) =>
    classifyFailure(callError(429, "", headers), endpoint).retryAfterMs;

  test("is read as seconds, as milliseconds and as a date, which counts from the answer's own date", () => {
    expect(waitOf({ "retry-after": "7" })).toBe(7_000);
    expect(waitOf({ "retry-after": "0.5" })).toBe(500);
    expect(waitOf({ "retry-after": "9", "retry-after-ms": "250" })).toBe(250);
    const date = "Wed, 21 Oct 2015 07:28:00 GMT";
    expect(waitOf({ date, "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT" })).toBe(30_000);
    expect(waitOf({ date, "retry-after": "Wed, 21 Oct 2015 07:27:00 GMT" })).toBe(0);
  });

  test("is unknown when it cannot be read", () => {
    expect(waitOf({})).toBeUndefined();
    expect(waitOf({ "retry-after": "soon" })).toBeUndefined();
    expect(waitOf({ "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT" })).toBeUndefined();
  });
});

group("the message", () => {
  const messageOf = (thrown: unknown, over: Partial<Endpoint> = {}) =>
    classifyFailure(thrown, { ...endpoint, ...over }).message;

  test("says what is wrong in words that help", () => {
    expect(messageOf(fetchError("ECONNREFUSED"))).toBe("nothing listens at http://127.0.0.1:11434");
    expect(messageOf(callError(401))).toBe("the key was refused (401)");
    expect(messageOf(callError(403))).toBe("access was refused (403)");
    expect(messageOf(callError(401), { hasKey: false })).toBe("the server asks for a key (401)");
    expect(messageOf(callError(404, { error: { code: "model_not_found", message: "try pulling it" } }))).toBe(
      "the server does not know the model qwen3 (404): try pulling it",
    );
    const wrongPath = "http://127.0.0.1:11434 has no model endpoint at this baseUrl (404)";
    expect(messageOf(callError(404, "404 page not found"))).toBe(wrongPath);
    expect(messageOf(callError(404, { detail: "Not Found" }))).toBe(`${wrongPath}: Not Found`);
  });

  test("keeps the words of an error that is no answer of the server", () => {
    expect(messageOf(new Error("bad port"))).toBe("the request cannot be made: bad port");
  });

  test("is one short line", () => {
    const message = messageOf(callError(400, { error: { message: `no\n\r\u0000\u001b[31m${"😀".repeat(500)}` } }));
    expect(message).not.toMatch(/[\p{Cc}]/u);
    expect(Array.from(message).length).toBeLessThanOrEqual(300);
    expect(message.isWellFormed()).toBe(true);
  });

  test.each([
    ["the configured key", `bad key ${KEY}`],
    ["a configured key of no known shape", "bad key correct horse"],
    ["a key of a known shape", "bad key sk-ant-api03-AbCdEf123456"],
    ["a masked key", "Incorrect API key provided: abcd****wxyz"],
    ["a bearer header", "sent Authorization: Bearer abc.def-123"],
    ["a long token", `bad token ${"a1".repeat(20)}`],
    ["a password in an address", "cannot reach https://me:pa55word@models.example/v1"],
  ])("never holds %s", (_, text) => {
    const message = messageOf(callError(500, { error: { message: text } }), { secrets: [KEY, "correct horse"] });
    expect(message).not.toMatch(/4f9aQ7xLm2Zt8Kc1|horse|AbCdEf|wxyz|abc\.def|a1a1a1|pa55word/);
    expect(message).toContain("the server failed (500)");
  });

  test("leaves the names of models and addresses readable", () => {
    const text =
      "model meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8 is not on https://models.example/v1/chat/completions";
    expect(messageOf(callError(500, { error: { message: text } }))).toContain(text);
  });
});
