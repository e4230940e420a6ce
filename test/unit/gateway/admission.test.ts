import { expect, test } from "vitest";
import { type AccessRules, type AdmissionDeps, admit } from "../../../src/gateway/admission.ts";
import type { Peer } from "../../../src/store/peers.ts";
import { message, person } from "./intake-rig.ts";

// The whole table of private chats: every rule, every standing of the sender (ID-R1 … ID-R5).

const peer = (state: Peer["state"]): Peer => ({
  ...{ channel: "telegram", account: "default", sender: "5", name: "", state },
  ...{ code: undefined, expiresAt: 0, wrong: 0, toldAt: 0 },
});
const DMS: readonly AccessRules["dm"][] = ["pairing", "allowlist", "open", "off"];
const STANDINGS = ["owner", "allowed", "approved", "pending", "denied", "none"] as const;

/** In the order of DMS. */
const TABLE: Readonly<Record<(typeof STANDINGS)[number], readonly string[]>> = {
  owner: ["owner", "owner", "owner", "owner"],
  allowed: ["user", "user", "user", "ignored"],
  approved: ["user", "ignored", "guest", "ignored"],
  pending: ["ask-owner", "ignored", "guest", "ignored"],
  denied: ["ask-owner", "ignored", "guest", "ignored"],
  none: ["ask-owner", "ignored", "guest", "ignored"],
};

test.each(STANDINGS)("a sender who is %s is let in as the table of rules says", (standing) => {
  const decided = DMS.map((dm) => {
    const known =
      standing === "approved" || standing === "pending" || standing === "denied" ? peer(standing) : undefined;
    const deps: AdmissionDeps = {
      ...{
        channel: "telegram",
        account: "default",
        owners: standing === "owner" ? ["telegram:5"] : ["discord:5", "telegram:55"],
      },
      rules: { dm, allow: standing === "allowed" ? ["5"] : ["55"], groups: {} },
      read: { peers: { get: () => known } as unknown as AdmissionDeps["read"]["peers"] },
    };
    const admission = admit(message("hello", { chat: "5", sender: person("5") }), deps);
    return admission.kind === "in" ? admission.role : admission.kind;
  });
  expect(decided).toEqual(TABLE[standing]);
});
