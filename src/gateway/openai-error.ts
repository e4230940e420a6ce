// Owns: OpenAI's shape of an error (platform.openai.com/docs/guides/error-codes), with a hint of what to do beside it.

const TYPES: Readonly<Record<string, string>> = {
  unauthorized: "authentication_error",
  forbidden: "permission_error",
  wrong_origin: "permission_error",
  queue_full: "rate_limit_error",
  too_many_failures: "rate_limit_error",
  no_answer: "server_error",
  internal: "server_error",
  store_unavailable: "server_error",
  fenced_off: "server_error",
};

interface Shown {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

export function openAiError({ code, message, hint }: Shown): unknown {
  return { error: { message, type: TYPES[code] ?? "invalid_request_error", param: null, code, hint } };
}
