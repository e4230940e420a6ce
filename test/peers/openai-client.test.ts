import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Puppet, startPuppet } from "../scenario/puppet.ts";
import { eventually, freshKey, type Json, last, startWorld, type WireMessage, type World } from "../scenario/world.ts";
import { settingsFor, TOKEN } from "../support/host.ts";
import { chunk, DONE, sendStream } from "../support/model-endpoint.ts";

// The OpenAI door as OpenAI's own library meets it. One host; every test has its own words.

const SETTINGS = `agents:
  main: { backends: [model], systemPrompt: "You are main." }
  helper: { backends: [model], systemPrompt: "You are the helper.", tools: [] }
queue: { cap: 2 }
turns: { attempts: 2 }`;

let puppet: Puppet;
let world: World;
let client: OpenAI;

beforeAll(async () => {
  puppet = await startPuppet();
  world = await startWorld(settingsFor(puppet.baseUrl, SETTINGS));
  client = new OpenAI({ baseURL: `${world.host().address}/v1`, apiKey: TOKEN, maxRetries: 0 });
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await puppet?.stop();
});

type Params = OpenAI.ChatCompletionCreateParamsNonStreaming;
type Message = OpenAI.ChatCompletionMessageParam;

const user = (content: string): Message => ({ role: "user", content });

function complete(words: string, over: Partial<Params> = {}, options: OpenAI.RequestOptions = {}) {
  return client.chat.completions.create({ model: "laneway", messages: [user(words)], ...over }, options);
}

const inSession = (name: string): OpenAI.RequestOptions => ({ headers: { "x-laneway-session": name } });
const spoken = (messages: readonly WireMessage[]) => messages.map(({ role, content }) => [role, content]);

/** The newest command whose text begins so, as the host lists it. */
async function commandOf(words: string): Promise<Json> {
  const { commands } = (await world.host().api("queue.list", { all: true, limit: 1_000 })).body;
  return commands.findLast(({ preview }: Json) => preview === words);
}

/** An answer in pieces with the figures that the server counted. */
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const pieces = `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
function answersInPieces(words: string): void {
  puppet.on(words, (response) => {
    const deltas = ["Once ", "upon ", "a ", "time."].map((content) => chunk({ role: "assistant", content }));
    sendStream(response, ...deltas, chunk({}, "stop"), pieces, DONE);
    response.end();
  });
}

const weather: OpenAI.ChatCompletionTool = {
  type: "function",
  function: {
    name: "weather",
    description: "Tells the weather.",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};

/** Asks for the weather first and speaks once it is told. */
function asksForWeather(words: string): void {
  puppet.on(words, (response, messages) => {
    const result = messages.at(-1);
    if (result?.role === "tool") {
      sendStream(response, chunk({ role: "assistant", content: `It is ${result.content}.` }), chunk({}, "stop"), DONE);
    } else {
      const call = {
        index: 0,
        id: "call_w",
        type: "function",
        function: { name: "weather", arguments: '{"city":"Oslo"}' },
      };
      sendStream(response, chunk({ role: "assistant", tool_calls: [call] }), chunk({}, "tool_calls"), DONE);
    }
    response.end();
  });
}

describe("models", () => {
  test("lists the host and its agents, and gives each by name", async () => {
    const { data } = await client.models.list();
    expect(data.map((model) => model.id)).toEqual(["laneway", "laneway/main", "laneway/helper"]);
    for (const { id } of data) {
      expect(await client.models.retrieve(id)).toMatchObject({ id, object: "model", owned_by: "laneway" });
    }
  });

  test("a model that is none of ours is 404, with those that are, when listed and when asked", async () => {
    for (const failed of [client.models.retrieve("gpt-4o"), complete("x", { model: "gpt-4o" })]) {
      const error = await failed.then(
        () => undefined,
        (thrown: unknown) => thrown as InstanceType<typeof OpenAI.NotFoundError>,
      );
      expect(error).toBeInstanceOf(OpenAI.NotFoundError);
      expect(error?.error).toMatchObject({
        code: "not_found",
        type: "invalid_request_error",
        hint: expect.stringContaining("laneway/helper"),
      });
    }
  });
});

describe("stateless", () => {
  test("answers whole, with the finish reason and the usage of the model", async () => {
    answersInPieces("tell me a story");
    const answer = await complete("tell me a story");
    expect(answer).toMatchObject({ object: "chat.completion", model: "laneway" });
    expect(answer.choices).toMatchObject([
      { index: 0, finish_reason: "stop", message: { role: "assistant", content: "Once upon a time." } },
    ]);
    expect(answer.usage).toEqual({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
  });

  test("streams the pieces as the model gives them, and the usage at the end when asked for", async () => {
    answersInPieces("stream me a story");
    const stream = await client.chat.completions.create({
      model: "laneway",
      messages: [user("stream me a story")],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const one of stream) chunks.push(one);
    const texts = chunks.map((one) => one.choices[0]?.delta.content ?? "").filter((text) => text !== "");
    expect(texts.length).toBeGreaterThan(1);
    expect(texts.join("")).toBe("Once upon a time.");
    expect(chunks.map((one) => one.choices[0]?.finish_reason).filter(Boolean)).toEqual(["stop"]);
    expect(last(chunks)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    });
    expect(new Set(chunks.map((one) => one.id)).size).toBe(1);
  });

  test("the client's history is the prompt, behind the agent's own; nothing is kept for the next request", async () => {
    const messages: Message[] = [
      { role: "system", content: "Be terse." },
      user("what is 6 x 7?"),
      { role: "assistant", content: "42" },
      user("and 6 x 8?"),
    ];
    await complete("", { model: "laneway/helper", messages });
    const [system, ...rest] = last(puppet.asked("and 6 x 8?"));
    expect(system?.content).toBe("You are the helper.\n\nBe terse.");
    expect(spoken(rest)).toEqual([
      ["user", "what is 6 x 7?"],
      ["assistant", "42"],
      ["user", "and 6 x 8?"],
    ]);
    await complete("what was my first question?");
    expect(spoken(last(puppet.asked("what was my first question?"))).slice(1)).toEqual([
      ["user", "what was my first question?"],
    ]);
    const { sessions } = (await world.host().api("sessions.list")).body;
    expect(sessions.filter(({ key }: Json) => key.includes("once-"))).toEqual([]);
  });

  test("sampling wishes and the form of the answer reach the model", async () => {
    const schema = {
      type: "object",
      properties: { n: { type: "integer" } },
      required: ["n"],
      additionalProperties: false,
    };
    await complete("with wishes", {
      temperature: 0.3,
      top_p: 0.9,
      max_completion_tokens: 55,
      stop: ["END"],
      seed: 7,
      response_format: { type: "json_schema", json_schema: { name: "answer", schema } },
    });
    const request = puppet.seen.find(({ body }) => JSON.stringify(body["messages"]).includes("with wishes"));
    expect(request?.body).toMatchObject({ temperature: 0.3, top_p: 0.9, max_tokens: 55, stop: ["END"], seed: 7 });
    expect(request?.body["response_format"]).toMatchObject({ type: "json_schema", json_schema: { schema } });
  });

  test("content in parts of text is taken", async () => {
    const parts: Message = {
      role: "user",
      content: [
        { type: "text", text: "part one, " },
        { type: "text", text: "part two" },
      ],
    };
    expect((await complete("", { messages: [parts] })).choices[0]?.message.content).toBe("re: part one, part two");
  });

  test("an aborted request cancels its command and the model's call (G18)", async () => {
    const begun = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    puppet.on("never mind", (response) => {
      response.on("close", closed.resolve);
      sendStream(response, chunk({ role: "assistant", content: "Well," }));
      begun.resolve();
    });
    for (const stream of [false, true]) {
      const stop = new AbortController();
      const asked = complete("never mind", stream ? { stream: true as unknown as false } : {}, { signal: stop.signal });
      const ended = asked.then(
        async (answer) => {
          for await (const _ of answer as unknown as AsyncIterable<unknown>);
        },
        () => {},
      );
      await begun.promise;
      await eventually("the model is asked", () => puppet.asked("never mind").length === (stream ? 2 : 1));
      stop.abort();
      await ended;
      await closed.promise;
      await eventually("the command is cancelled", async () => (await commandOf("never mind")).state === "cancelled");
    }
  });
});

describe("a named session", () => {
  test("keeps its history; of what the client sends only the last message of the user is appended", async () => {
    await complete("I am Ada", {}, inSession("ada"));
    const messages = [
      user("made up by the client"),
      { role: "assistant", content: "never said" } as Message,
      user("who am I?"),
    ];
    await complete("", { messages }, inSession("ada"));
    expect(spoken(last(puppet.asked("who am I?"))).slice(1)).toEqual([
      ["user", "I am Ada"],
      ["assistant", "re: I am Ada"],
      ["user", "who am I?"],
    ]);
    await complete("who am I here?", {}, inSession("someone-else"));
    expect(JSON.stringify(last(puppet.asked("who am I here?")))).not.toContain("Ada");
  });

  test("runs on when its client is gone: the answer is in the session afterwards", async () => {
    const release = Promise.withResolvers<void>();
    puppet.on("think hard", async (response) => {
      await release.promise;
      sendStream(response, chunk({ role: "assistant", content: "Thought." }), chunk({}, "stop"), DONE);
      response.end();
    });
    const stop = new AbortController();
    const asked = complete("think hard", {}, { ...inSession("patient"), signal: stop.signal }).catch(() => {});
    await eventually("the model is asked", () => puppet.asked("think hard").length === 1);
    stop.abort();
    await asked;
    release.resolve();
    await eventually("the turn ends", async () => (await commandOf("think hard")).state === "done");
    await complete("well?", {}, inSession("patient"));
    expect(spoken(last(puppet.asked("well?")))).toContainEqual(["assistant", "Thought."]);
  });

  test("a name that cannot be one is refused", async () => {
    await expect(complete("x", {}, inSession("a:b"))).rejects.toThrow(OpenAI.BadRequestError);
  });

  test("chat commands work in it", async () => {
    await complete("remember this", {}, inSession("fresh"));
    expect((await complete("/new", {}, inSession("fresh"))).choices[0]?.message.content).toBe(
      "A new conversation begins here.",
    );
    await complete("what now?", {}, inSession("fresh"));
    expect(JSON.stringify(last(puppet.asked("what now?")))).not.toContain("remember this");
  });
});

describe("tools of the client", () => {
  test("a call ends the request, and the result resumes it, as the library's own loop does it", async () => {
    asksForWeather("how is Oslo?");
    const runner = client.chat.completions.runTools({
      model: "laneway",
      messages: [user("how is Oslo?")],
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            description: "Tells the weather.",
            parameters: { type: "object", properties: { city: { type: "string" } } },
            parse: JSON.parse,
            function: ({ city }: { city: string }) => `cold in ${city}`,
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe("It is cold in Oslo.");
    expect(puppet.asked("how is Oslo?")).toHaveLength(2);
  });

  test.each([false, true])(
    "in a named session call and result stand once each in the transcript (stream: %s)",
    async (stream) => {
      const words = `weather, streamed ${stream}`;
      asksForWeather(words);
      const session = inSession(`tools-${stream}`);
      const first = stream
        ? await client.chat.completions
            .stream({ model: "laneway", messages: [user(words)], tools: [weather] }, session)
            .finalChatCompletion()
        : await complete(words, { tools: [weather] }, session);
      const choice = first.choices[0];
      expect(choice?.finish_reason).toBe("tool_calls");
      expect(choice?.message.tool_calls).toMatchObject([
        { id: "call_w", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } },
      ]);
      const { role, content, tool_calls = [] } = choice?.message ?? { role: "assistant", content: null };
      const history: Message[] = [
        user(words),
        { role, content, tool_calls },
        { role: "tool", tool_call_id: "call_w", content: "mild" },
      ];
      const second = await complete("", { messages: history, tools: [weather] }, session);
      expect(second.choices[0]?.message.content).toBe("It is mild.");
      const request = last(puppet.asked(words)).slice(1);
      expect(request.map((message) => message.role)).toEqual(["user", "assistant", "tool"]);
      expect(request[2]).toMatchObject({ tool_call_id: "call_w", content: "mild" });

      // Clients repeat the whole history: nothing of it may be appended again.
      const later = [
        ...history,
        { role: "assistant", content: "It is mild." } as Message,
        user(`after that, ${stream}`),
      ];
      await complete("", { messages: later }, session);
      expect(last(puppet.asked(`after that, ${stream}`)).map((message) => message.role)).toEqual([
        ...["system", "user", "assistant", "tool", "assistant", "user"],
      ]);
    },
  );

  test("of a reply that calls a tool of the host too, the client gets only its own", async () => {
    puppet.on("both kinds", (response) => {
      const call = (index: number, name: string) => ({
        index,
        id: `call_${name}`,
        type: "function",
        function: { name, arguments: "{}" },
      });
      sendStream(
        response,
        chunk({ role: "assistant", tool_calls: [call(0, "list"), call(1, "weather")] }),
        chunk({}, "tool_calls"),
        DONE,
      );
      response.end();
    });
    const answer = await complete("both kinds", { tools: [weather] });
    expect(answer.choices[0]?.message.tool_calls?.map((call) => call.id)).toEqual(["call_weather"]);
  });
});

describe("repeats", () => {
  test("requests with one Idempotency-Key are one command and one model call (G2)", async () => {
    const keyed = (key: string): OpenAI.RequestOptions => ({ headers: { "idempotency-key": key } });
    const key = freshKey();
    const same = () => complete("just once", {}, keyed(key));
    const answers = await Promise.all([same(), same()]);
    answers.push(await same());
    expect(new Set(answers.map((answer) => answer.id)).size).toBe(1);
    expect(answers.map((answer) => answer.choices[0]?.message.content)).toEqual([
      "re: just once",
      "re: just once",
      "re: just once",
    ]);
    expect(puppet.asked("just once")).toHaveLength(1);
    await complete("just once", {}, keyed(freshKey()));
    expect(puppet.asked("just once")).toHaveLength(2);
  });

  test("the library's own retry after its timeout joins the command that still runs (G2)", async () => {
    const release = Promise.withResolvers<void>();
    puppet.on("slow but sure", async (response) => {
      await release.promise;
      sendStream(response, chunk({ role: "assistant", content: "Sure." }), chunk({}, "stop"), DONE);
      response.end();
    });
    const requests: (string | null)[] = [];
    const patient = client.withOptions({
      maxRetries: 5,
      timeout: 1_500,
      fetch: (url, init) => {
        requests.push(new Headers(init?.headers).get("x-stainless-retry-count"));
        if (requests.length === 3) release.resolve();
        return fetch(url, init);
      },
    });
    const answer = await patient.chat.completions.create(
      { model: "laneway", messages: [user("slow but sure")] },
      inSession("slow"),
    );
    expect(answer.choices[0]?.message.content).toBe("Sure.");
    expect(requests.slice(0, 3)).toEqual(["0", "1", "2"]);
    expect(puppet.asked("slow but sure")).toHaveLength(1);
  });

  test("a turn that no backend answered is 502, and the library's retries do not run it again (G19)", async () => {
    puppet.on("always broken", (response) => {
      response.writeHead(500, { "content-type": "application/json" });
      response.end('{"error":{"message":"kaput"}}');
    });
    let requests = 0;
    const retrying = client.withOptions({
      maxRetries: 2,
      fetch: (url, init) => {
        requests += 1;
        return fetch(url, init);
      },
    });
    const error = await retrying.chat.completions.create({ model: "laneway", messages: [user("always broken")] }).then(
      () => undefined,
      (thrown: unknown) => thrown as InstanceType<typeof OpenAI.APIError>,
    );
    expect(error).toBeInstanceOf(OpenAI.InternalServerError);
    expect(error).toMatchObject({
      status: 502,
      code: "no_answer",
      type: "server_error",
      error: { hint: expect.any(String) },
    });
    expect(error?.message).toContain("kaput");
    expect(requests).toBe(3);
    // Two attempts on the one backend, and no more for the two retries.
    expect(puppet.asked("always broken")).toHaveLength(2);
    // The client has been told, so nothing waits for it in the outbox.
    const { parts } = (await world.host().api("outbox.list")).body;
    expect(parts.filter(({ preview }: Json) => preview.includes("kaput"))).toEqual([]);
  });

  test("of two requests that wait for one stateless command one may go: the other still gets the answer", async () => {
    const release = Promise.withResolvers<void>();
    puppet.on("for both of us", async (response) => {
      await release.promise;
      sendStream(response, chunk({ role: "assistant", content: "Here." }), chunk({}, "stop"), DONE);
      response.end();
    });
    const headers = { "idempotency-key": freshKey() };
    const body: OpenAI.ChatCompletionCreateParamsStreaming = {
      ...{ model: "laneway", messages: [user("for both of us")], stream: true },
    };
    // A stream begins when its request waits for the command.
    const impatient = await client.chat.completions.create(body, { headers });
    const patient = await client.chat.completions.create(body, { headers });
    impatient.controller.abort();
    // By the end of a later request the host has seen that the first client is gone.
    await world.host().api("status");
    release.resolve();
    let text = "";
    for await (const one of patient) text += one.choices[0]?.delta.content ?? "";
    expect(text).toBe("Here.");
    expect(puppet.asked("for both of us")).toHaveLength(1);
  });

  test("the same words without a retry's mark are meant as a new request", async () => {
    await complete("say it again");
    await complete("say it again");
    expect(puppet.asked("say it again")).toHaveLength(2);
  });
});

describe("errors have OpenAI's shape and a hint", () => {
  const failure = async (asked: Promise<unknown>) =>
    asked.then(
      () => undefined,
      (thrown: unknown) => thrown as InstanceType<typeof OpenAI.APIError>,
    );

  test("401 for a wrong key", async () => {
    const error = await failure(client.withOptions({ apiKey: "wrong" }).models.list());
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(error?.error).toMatchObject({
      type: "authentication_error",
      code: "unauthorized",
      param: null,
      hint: expect.any(String),
    });
  });

  test.each([
    ["two choices", { n: 2 }, /only one choice/],
    [
      "an image",
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:," } }] }] },
      /image_url.*only text/,
    ],
    [
      "a history that ends with the assistant",
      { messages: [{ role: "assistant", content: "hm" }] },
      /last message is the assistant's/,
    ],
    ["no message", { messages: [] }, /messages/],
  ])("400 for %s, which would be a broken promise", async (_, over, said) => {
    const error = await failure(complete("x", over as Partial<Params>));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error?.message).toMatch(said);
    expect(error?.error).toMatchObject({ type: "invalid_request_error", code: "invalid_input" });
  });

  test("429 with Retry-After at the cap of a session (G15)", async () => {
    puppet.on("holds the line", () => {});
    const stop = new AbortController();
    const held = [complete("holds the line", {}, { ...inSession("full"), signal: stop.signal })];
    await eventually("the model is asked", () => puppet.asked("holds the line").length === 1);
    for (const words of ["waits 1", "waits 2"]) {
      held.push(complete(words, {}, { ...inSession("full"), signal: stop.signal }));
      await eventually(`${words} waits`, async () => (await commandOf(words))?.state === "queued");
    }
    const error = await failure(complete("one too many", {}, inSession("full")));
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(Number(error?.headers?.get("retry-after"))).toBeGreaterThan(0);
    expect(error?.error).toMatchObject({ type: "rate_limit_error", code: "queue_full", hint: expect.any(String) });
    expect(await commandOf("one too many")).toBeUndefined();
    stop.abort();
    await Promise.allSettled(held);
    await world.host().api("send", { text: "/stop all", key: freshKey() });
  });

  test("404 for a route that is not there", async () => {
    const error = await failure(client.embeddings.create({ model: "laneway", input: "x" }));
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect(error?.error).toMatchObject({ code: "not_found" });
  });

  test("a stream that fails after it began says why, and what was begun anew is marked", async () => {
    let tries = 0;
    puppet.on("breaks off", (response) => {
      tries += 1;
      sendStream(response, chunk({ role: "assistant", content: `try ${tries}` }));
      response.end();
    });
    let text = "";
    const read = async () => {
      const stream = await client.chat.completions.create({
        model: "laneway",
        messages: [user("breaks off")],
        stream: true,
      });
      for await (const one of stream) text += one.choices[0]?.delta.content ?? "";
    };
    const error = await failure(read());
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error?.message).toContain("The model did not answer.");
    expect(text).toBe("try 1\n\n[begun anew]\n\ntry 2");
  });
});
