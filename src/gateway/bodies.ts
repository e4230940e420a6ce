// Owns: reading a request's body: UTF-8, JSON, the form that a route expects. Knows no route.
import type { Context } from "hono";
import { z } from "zod";
import { InvalidInput, messageOf } from "../kernel/errors.ts";

/** A form of another site can send text/plain without asking, but never JSON (NET-9). */
class WrongMediaType extends InvalidInput {
  override readonly code = "wrong_media_type";
}

/** The body as text. Throws InvalidInput for bytes that are no UTF-8. */
export async function textBody(c: Context): Promise<string> {
  const bytes = await c.req.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (thrown) {
    throw new InvalidInput("the body is not UTF-8", { cause: thrown });
  }
}

/** The body as JSON; none at all is `{}`. Throws WrongMediaType or InvalidInput. */
export async function jsonBody(c: Context): Promise<unknown> {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/json\b/i.test(type)) {
    throw new WrongMediaType(`expected a JSON body (content-type application/json), got ${JSON.stringify(type)}`);
  }
  const text = await textBody(c);
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch (thrown) {
    throw new InvalidInput(`the body is not JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Throws InvalidInput with everything that does not fit. */
export function parse<T>(schema: z.ZodType<T>, raw: unknown): T {
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw new InvalidInput(z.prettifyError(parsed.error));
  return parsed.data;
}
