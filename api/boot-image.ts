import type { MachineOSConfig } from './machine-os-config.ts';
import { repositoryOf } from './references.ts';

/**
 * The tag under which the image for a pool's new nodes is published. It stays the same, so that installers and templates of
 * machines can name it.
 *
 * @returns `REPOSITORY:current` in a repository of the pool's own name, and `REPOSITORY:current-POOL` in any other, which
 *   pools may share.
 */
export function bootImageTag({ spec }: Pick<MachineOSConfig, 'spec'>): string {
  const { machineConfigPool, renderedImagePushSpec } = spec;
  const repository = repositoryOf(renderedImagePushSpec);
  const isOwn = repository.endsWith(`/${machineConfigPool.name}`);
  return `${repository}:${isOwn ? 'current' : `current-${machineConfigPool.name}`}`;
}
