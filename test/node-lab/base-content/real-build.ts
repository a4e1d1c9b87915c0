import type { ClusterPolicies } from '../../../api/disruption-policy.ts';
import type { MachineConfig } from '../../../api/machine-config.ts';
import type { DigestedPullspec } from '../../../api/references.ts';
import { appendBuild } from '../../../builder/steps/append-build.ts';
import { goArchitecture } from '../../../image/manifest.ts';
import { deadline } from '../../fixtures/patience.ts';
import { POLICY, type UpdatedMachine } from '../lab-updates.ts';
import { INSTANCE } from './base-configs.ts';

const BUILD_MS = 300_000;
const NONE = [{ type: 'None' as const }];

/** By which every change of the lab's configs is taken live. */
const LIVE: ClusterPolicies = {
  files: ['/etc', '/usr', '/sbin', '/var', '/home', '/opt', '/root'].map((path) => ({ path, actions: NONE })),
  units: [INSTANCE, 'lab-bar@.service'].map((name) => ({ name, actions: NONE })),
  sshkey: { actions: NONE },
};

/**
 * Makes an image as the builder makes a pool's, on the machine's stock image, whose layers it reads.
 *
 * @param from what the machine may take it live from. @throws BuildFailure
 */
export async function buildOnStock(
  { stock, registry }: Pick<UpdatedMachine, 'stock' | 'registry'>,
  rendered: MachineConfig,
  from?: MachineConfig,
): Promise<DigestedPullspec> {
  const result = await appendBuild(
    registry,
    {
      pool: 'worker',
      rendered,
      baseImage: stock,
      pushSpec: `${stock.slice(0, stock.indexOf('@'))}:${rendered.metadata.name}`,
      policies: LIVE,
      policyDigest: POLICY,
      froms: from === undefined ? [] : [{ config: from, base: stock }],
      architecture: goArchitecture(process.arch),
      version: 'lab',
      created: '2026-01-01T00:00:00Z',
    },
    deadline(BUILD_MS),
  );
  return result.image;
}
