// Owns: the branded ids and the port to randomness. Imports nothing of ours.

declare const brand: unique symbol;
/** Brands add up, so that a CommandId is a RowSeq too. */
type Brand<T, Name extends string> = T & { readonly [brand]: { readonly [name in Name]: true } };

/** Row sequence: one counter for all rows that people see, so that a larger one is later. */
export type RowSeq = Brand<number, "RowSeq">;
export type CommandId = Brand<RowSeq, "CommandId">;
export type PartId = Brand<RowSeq, "PartId">;
/** `agent:<agent>:<channel>:<account>:<chat>[:<thread>]` */
export type SessionKey = Brand<string, "SessionKey">;
/** Raised at each boot; identifies one life of the host. */
export type Generation = Brand<number, "Generation">;
/** Raised at each claim of a command; with the generation it is the fence. */
export type ClaimNumber = Brand<number, "ClaimNumber">;

/** Randomness comes in as a port, so that tests can fix it. */
export interface Ids {
  /** A url-safe random string with at least `bits` bits of entropy (default 128). */
  random(bits?: number): string;
  /** A number in [0, 1), for jitter only. */
  fraction(): number;
}

export function systemIds(): Ids {
  return {
    random(bits = 128) {
      const bytes = crypto.getRandomValues(new Uint8Array(Math.ceil(bits / 8)));
      return Buffer.from(bytes).toString("base64url");
    },
    fraction: () => Math.random(),
  };
}
