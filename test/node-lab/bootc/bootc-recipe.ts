import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { shellWords } from '../../../daemon/os/os-command.ts';
import type { RootfsRecipe } from '../../../workshop/sandbox/systemd-node/rootfs.ts';
import { COMING_RECIPE } from '../prepared-root.ts';

/**
 * @param bootc the program; another one makes another root file system. @param packages more of them.
 * @returns what Debian's coming release needs to be bootc's. bootc pulls by skopeo and keeps images of its own by
 *   podman; their dependencies have the policy and the registries of containers.
 */
export function bootcRecipe(bootc: string, packages: readonly string[] = []): RootfsRecipe {
  const digest = createHash('sha256').update(readFileSync(bootc)).digest('hex');
  const install = `${shellWords(['install', '-m', '755', bootc])} "$1"/usr/bin/bootc # ${digest}`;
  return {
    ...COMING_RECIPE,
    packages: [...COMING_RECIPE.packages, 'podman', 'skopeo', 'ca-certificates', ...packages],
    hooks: [...COMING_RECIPE.hooks, `--customize-hook=${install}`],
  };
}
