// Owns: making any text fit to be shown: one line, short, without a key or token.

/** What stands in place of a secret. */
const HIDDEN = "[hidden]";
/** Shorter configured values are placeholders such as `x`, and hiding them would only garble the text. */
const MIN_SECRET_CHARS = 4;

/** Shapes of keys that providers and hubs hand out. A wrong hit costs a word, a miss costs a key. */
const KEY_SHAPES: readonly RegExp[] = [
  /\b(?:Bearer|Basic)\s+[\w.~+/=*-]{4,}/gi,
  /\b(?:sk|pk|rk|ak|key|gsk|csk|xai|hf|r8|fw|tgp|pplx|nvapi|ghp|gho|ghs|github_pat|glpat|xox[a-z])[-_][\w.*-]{6,}/gi,
  /\b(?:AIza|AKIA|ya29|eyJ)[\w.*-]{8,}/g,
  // A key that its server has already masked: `abcd****wxyz`.
  /[\w-]*\*{3,}[\w-]*/g,
  // Any long run of letters and digits; model names have hyphens, dots or slashes long before.
  /\b(?=[A-Za-z_]*\d)\w{32,}/g,
];

/** Hides `secrets` and everything that looks like a key. */
export function scrub(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length >= MIN_SECRET_CHARS) clean = clean.replaceAll(secret, HIDDEN);
  }
  for (const shape of KEY_SHAPES) clean = clean.replace(shape, HIDDEN);
  return clean.replace(/\/\/[^\s/@]+@/g, "//");
}

/** One line of at most `maxChars` characters, cut at a whole character. */
export function oneLine(text: string, maxChars: number): string {
  const flat = text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  if (flat.length <= maxChars) return flat;
  const chars = Array.from(flat.slice(0, maxChars * 2));
  return chars.length <= maxChars ? chars.join("") : `${chars.slice(0, maxChars - 1).join("")}…`;
}

/** The values among `headers` that are secrets, judged by the header's name, and `apiKey`. */
export function secretsOf(apiKey: string | undefined, headers: Readonly<Record<string, string>> = {}): string[] {
  const fromHeaders = Object.entries(headers)
    .filter(([name]) => /auth|key|token|secret|cookie/i.test(name))
    .flatMap(([, value]) => [value, ...value.split(/\s+/).slice(1)]);
  // Longest first, so that a secret inside another does not leave the rest of it standing.
  return [apiKey ?? "", ...fromHeaders].filter((value) => value !== "").sort((a, b) => b.length - a.length);
}
