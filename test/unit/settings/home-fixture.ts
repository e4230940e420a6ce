// Owns: a private home in a temporary folder, with a settings file of the wanted text and mode.
import { chmod } from "node:fs/promises";
import { ConfigError } from "../../../src/kernel/errors.ts";
import type { Env } from "../../../src/settings/env.ts";
import { type HomePaths, homePaths } from "../../../src/settings/home.ts";
import { type LoadedSettings, loadSettings } from "../../../src/settings/load.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/files.ts";

export interface TestHome extends AsyncDisposable {
  readonly folder: TemporaryFolder;
  readonly paths: HomePaths;
  readonly env: Env;
  /** Writes a file below the home; private unless another mode is given. */
  write(name: string, text: string, mode?: number): Promise<string>;
  /** Writes the settings file and loads it. */
  load(text: string, mode?: number): Promise<LoadedSettings>;
  /** The message of the refusal of these settings. */
  refusal(text: string, mode?: number): Promise<string>;
}

export async function testHome(variables: Env = {}): Promise<TestHome> {
  const folder = await temporaryFolder();
  const env = { ...variables, LANEWAY_HOME: folder.path };
  const paths = homePaths(env);
  const write: TestHome["write"] = async (name, text, mode = 0o600) => {
    const path = await folder.write(name, text);
    await chmod(path, mode);
    return path;
  };
  const load: TestHome["load"] = async (text, mode) => {
    await write("laneway.yaml", text, mode);
    return loadSettings({ file: undefined, paths, env });
  };
  return {
    folder,
    paths,
    env,
    write,
    load,
    refusal: async (text, mode) =>
      messageOfRefusal(
        await load(text, mode).then(
          () => undefined,
          (thrown) => thrown,
        ),
      ),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

function messageOfRefusal(thrown: unknown): string {
  if (thrown instanceof ConfigError && thrown.exitCode === 78) return thrown.message;
  throw new Error(`expected a ConfigError with exit code 78, but got ${String(thrown)}`);
}
