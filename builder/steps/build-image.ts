import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { asBuildFailure } from '../as-build-failure.ts';
import type { BuildSecret } from '../engine/build-context.ts';
import { type EngineImage, type EngineParts, engineImage } from '../engine/engine-image.ts';
import { engineWish } from '../engine/engine-request.ts';
import { layerContent } from '../layer/layer-content.ts';
import { type AppendInput, appendBuild } from './append-build.ts';
import { untraced } from './build-trace.ts';
import type { BuildResult } from './running-builds.ts';

export interface BuildInput extends Omit<AppendInput, 'stockImage'> {
  /** What the pool's image has beyond its MachineConfigs; undefined for nothing. */
  readonly spec: Partial<MachineOSConfigSpec> | undefined;
  /** Value of the rebuild annotation; '' where there is none. */
  readonly rebuild: string;
  /** @returns the values of Secrets by their names. @throws BuildFailure */
  readonly readSecrets: (names: readonly string[]) => Promise<readonly BuildSecret[]>;
}

/**
 * Makes a pool's image: where commands have to run, a container engine makes an image of the base first; the rendered
 * config is laid on it as one layer, always last.
 *
 * @throws BuildFailure that says whether trying again may help.
 */
export async function buildImage(
  client: RegistryClient,
  input: BuildInput,
  engine: Omit<EngineParts, 'client'>,
  signal: AbortSignal,
): Promise<BuildResult> {
  const made = await makeBase(client, input, engine, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw asBuildFailure(error);
  });
  if (made === undefined) return appendBuild(client, input, signal);
  const { image, stockImage, built, logTail } = made;
  const result = await appendBuild(client, { ...input, baseImage: image, stockImage }, signal);
  const onEngine = { ...result, engineImage: image };
  return built ? { ...onEngine, way: 'Engine', logTail } : onEngine;
}

async function makeBase(
  client: RegistryClient,
  input: BuildInput,
  engine: Omit<EngineParts, 'client'>,
  signal: AbortSignal,
): Promise<EngineImage | undefined> {
  const { spec, rendered, architecture, pool, baseImage, pushSpec, rebuild } = input;
  const wish = engineWish(spec, rendered, architecture);
  if (wish === undefined) return undefined;
  const { step = untraced } = input;
  return step('engine', () =>
    engineImage(
      { ...engine, client },
      {
        wish,
        pool,
        baseImage,
        pushSpec,
        rendered,
        architecture,
        rebuild,
        tree: () => treeOf(rendered),
        secrets: () => input.readSecrets(wish.buildSecrets),
      },
      signal,
    ),
  );
}

/** What can't become a layer is told when the layer is made. */
function treeOf(rendered: MachineConfig): readonly LayerEntry[] {
  const parsed = parseNodeConfig(rendered);
  const content = parsed.ok ? layerContent(parsed.config, rendered, true) : undefined;
  return content?.ok === true ? content.entries : [];
}
