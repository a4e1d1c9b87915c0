import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { requestedBase } from '../../builder/decide.ts';
import { engineSpecOf } from '../../builder/engine/engine-spec.ts';
import { decideOptIn, type LayeredState, type OptIn } from '../../disruption/opt-in.ts';

/**
 * @param spec of the pool's MachineOSConfig, as far as it is known. @param architectures of the pool's nodes, as GOARCH.
 * @returns what layering gives the nodes of a pool.
 */
export function layeredStateOf(
  rendered: MachineConfig,
  spec: Partial<MachineOSConfigSpec>,
  architectures: readonly string[],
): LayeredState {
  const known = architectures.length === 0 ? ['amd64'] : architectures;
  return {
    config: rendered.metadata.name,
    base: requestedBase({ spec }, rendered),
    byEngine: known.some((architecture) => needsEngine(spec, rendered, architecture)),
  };
}

/** What the builder refuses, no image has: its nodes stay in standard mode. */
function needsEngine(spec: Partial<MachineOSConfigSpec>, rendered: MachineConfig, architecture: string) {
  try {
    return engineSpecOf(spec, rendered, architecture) !== undefined;
  } catch {
    return true;
  }
}

/** @returns whether a node in standard mode has to reboot into layered mode, as far as its status shows it. */
export function optInOf({ status }: Pick<MachineConfigNode, 'status'>, to: LayeredState): OptIn {
  const { configVersion, baseImage = '', osBackend } = status ?? {};
  return decideOptIn(
    { config: configVersion?.current ?? '', base: baseImage, osBackend: osBackend?.name },
    to,
  );
}
