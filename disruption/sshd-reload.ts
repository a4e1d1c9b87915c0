import type { DisruptionAction, DisruptionCause } from '../api/disruption-action.ts';
import { nodePaths } from '../api/names.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';

type HasKeys = Pick<NodeConfig, 'sshKeys'>;

/** sshd as most distributions call it; the daemon knows the other name (daemon/steps/act-on-services.ts). */
export const SSHD = 'sshd.service';

/**
 * The keys of an image are found by a file of sshd's configuration (AuthorizedKeysFile), which sshd reads at its start.
 * Where the first keys come or the last ones go it has to read it again: nobody could log in by the keys of a new
 * image, or those of an old one would be looked for where they are no more. In standard mode keys lie where sshd looks
 * anyway.
 *
 * @param from keys of the image that the node runs; none for a node in standard mode. @param to keys of its target.
 * @returns the cause with its action; none where sshd's configuration stays.
 */
export function sshdCauses(from: HasKeys, to: HasKeys): readonly DisruptionCause[] {
  const [had, has] = [from.sshKeys.size > 0, to.sshKeys.size > 0];
  if (had === has) return [];
  return [
    {
      subject: nodePaths.sshdConfig,
      kind: 'file',
      change: has ? 'added' : 'removed',
      rule: "sshd reads where an image's keys are when it is reloaded",
      actions: [{ type: 'Reload', service: SSHD }],
    },
  ];
}

/** @returns whether sshd is reloaded by an action. */
export function reloadsSshd(actions: readonly DisruptionAction[]): boolean {
  return actions.some((action) => action.type === 'Reload' && action.service === SSHD);
}
