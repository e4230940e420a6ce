// Owns: a client without manners, for what grammY would never send.
import type { FakeTelegram } from "./telegram.ts";

export interface RawAnswer {
  readonly status: number;
  readonly description: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks at is its own business
  readonly result: any;
  readonly body: unknown;
}

type Sendable = object | string | FormData | URLSearchParams;

/** POSTs to a method, JSON unless it is a form or a string, and returns the answer whatever it is. */
export async function raw(
  fake: FakeTelegram,
  method: string,
  body: Sendable = {},
  token = fake.token,
): Promise<RawAnswer> {
  const form = body instanceof FormData || body instanceof URLSearchParams;
  const response = await fetch(`${fake.address}/bot${token}/${method}`, {
    method: "POST",
    body: form || typeof body === "string" ? body : JSON.stringify(body),
    ...(!form && { headers: { "content-type": "application/json" } }),
  });
  const answer = (await response.json()) as { description?: string; result?: unknown };
  return { status: response.status, description: answer.description, result: answer.result, body: answer };
}

/** The rules that the client has broken, in order. */
export function broken(fake: FakeTelegram): readonly string[] {
  return fake.violations.map(({ rule }) => rule);
}
