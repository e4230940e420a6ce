// Owns: turning settings into what a turn uses: backends, tools, workspace, limits.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { AgentView } from "../agents/assistant.ts";
import { ConfigError } from "../kernel/errors.ts";
import type { HomePaths } from "../settings/home.ts";
import type { BackendSettings, Settings } from "../settings/schema.ts";
import { makeBackend } from "../turns/backends/make.ts";
import type { Backend } from "../turns/backends/port.ts";
import { makeGrants } from "../turns/grants.ts";
import { makeListTool } from "../turns/tools/list.ts";
import { rememberedToolSpec, type Tool } from "../turns/tools/port.ts";
import { makeReadTool } from "../turns/tools/read.ts";

/** What a model that says nothing of its window is given: small enough for most of today's. */
const DEFAULT_CONTEXT_TOKENS = 32_000;

export type Agents = ReadonlyMap<string, AgentView>;

/** Throws ConfigError for an agent whose backends are unknown. Makes the workspaces. */
export function makeAgents(settings: Settings, paths: HomePaths): Agents {
  const backends = new Map(Object.entries(settings.backends).map(([name, one]) => [name, lazyBackend(name, one)]));
  const tools = makeTools(paths);
  const toolSpec = rememberedToolSpec();
  const agents = new Map<string, AgentView>();
  for (const [name, agent] of Object.entries(settings.agents)) {
    const chain = agent.backends.map((wanted) => known(backends, wanted, name));
    const workspace = resolve(paths.home, agent.workspace);
    mkdirSync(workspace, { recursive: true, mode: 0o700 });
    const allowed =
      agent.tools === undefined ? tools : tools.filter((tool) => agent.tools?.some((name) => name === tool.name));
    agents.set(name, {
      backends: chain,
      tools: () => allowed,
      toolSpec,
      workspace,
      systemPrompt: agent.systemPrompt,
      contextTokens: Math.min(...agent.backends.map((wanted) => contextTokens(settings.backends[wanted]))),
      limits: settings.turns,
      iterations: settings.budget.iterations,
    });
  }
  return agents;
}

function known(backends: ReadonlyMap<string, Backend>, wanted: string, agent: string): Backend {
  const backend = backends.get(wanted);
  if (backend === undefined) throw new ConfigError(`agent ${agent} names the backend ${wanted}, which does not exist`);
  return backend;
}

function contextTokens(settings: BackendSettings | undefined): number {
  if (settings === undefined || settings.kind === "offline") return DEFAULT_CONTEXT_TOKENS;
  return settings.contextTokens ?? DEFAULT_CONTEXT_TOKENS;
}

/** The module of a kind is loaded at its first call, so that starting costs nothing for it. Its grants hold for all agents. */
function lazyBackend(name: string, settings: BackendSettings): Backend {
  const most = settings.kind === "offline" ? undefined : settings.maxConcurrent;
  let made: Promise<Backend> | undefined;
  return {
    name,
    kind: settings.kind,
    model: settings.kind === "offline" ? "none" : settings.model,
    journal: "steps",
    grants: most === undefined ? undefined : makeGrants(most),
    async *complete(request, signal) {
      made ??= makeBackend(name, settings);
      yield* (await made).complete(request, signal);
    },
  };
}

/** The product's own files are out of reach even when the workspace is the home itself (FILE-R2). */
function makeTools(paths: HomePaths): readonly Tool[] {
  const { db, lockDb, settings, lastGood, token, hostFile, cache, logs, media } = paths;
  const denied = [db, `${db}-wal`, `${db}-shm`, lockDb, settings, lastGood, token, hostFile, cache, logs, media];
  return [makeReadTool({ denied }), makeListTool({ denied })];
}
