// Owns: running one tool call the way a turn does, with nothing but a workspace.
import { runTool, type Tool, type ToolResult } from "../../src/turns/tools/port.ts";
import { fakeClock } from "./clock.ts";

/** Runs `tool` on `input`, which is sent as JSON. No timeout passes, since the clock stands still. */
export async function callTool(tool: Tool, input: unknown, workspace: string): Promise<ToolResult> {
  const call = { id: "1", name: tool.name, input: JSON.stringify(input) };
  return await runTool([tool], call, { workspace, signal: new AbortController().signal }, fakeClock());
}
