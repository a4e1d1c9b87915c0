import path from 'node:path';
import { MachineConfigs } from '../../api/machine-config.ts';
import { nodePaths } from '../../api/names.ts';
import { carriedConfig } from '../../machineconfig/rendered-annotations.ts';
import { PathError } from '../host-files/host-file-error.ts';
import { nodeConfigOf, PrepareRefused } from '../records/current.ts';
import { desiredTree, UnknownAccountError } from '../standard/desired-tree.ts';
import { type ManagedContent, managedContent } from '../standard/managed-content.ts';
import { checkContent } from '../standard/write-config.ts';
import { NoRoomError } from '../standard/write-log.ts';
import type { Preparation } from './preparation.ts';

type OnDisk = Pick<Preparation, 'root' | 'current' | 'signal'>;

/**
 * Refuses content that could not be written to this node as it is: found while the target is staged, before anything is cordoned
 * or drained for an update that would fail. What is in /etc of another deployment is not known yet, so on the way from or to an
 * image only the state that all deployments share is looked at.
 *
 * @param to the target's content. @throws PrepareRefused, the file system's errors.
 */
export async function refuseUnwritable({ root, current, signal }: OnDisk, to: ManagedContent): Promise<void> {
  const from = await managedContent(root, current);
  const isWithinStandard = to.delivery === 'Standard' && current?.mode !== 'Layered';
  const place = { root, stateDir: path.join(root, nodePaths.state) };
  try {
    const scope = isWithinStandard ? {} : ({ scope: 'state' } as const);
    await checkContent(place, { from, to, ...scope }, signal);
  } catch (error) {
    const isRefusal =
      error instanceof UnknownAccountError || error instanceof PathError || error instanceof NoRoomError;
    if (!isRefusal) throw error;
    throw new PrepareRefused(`${to.config.name} can't be written to this node: ${error.message}`, {
      cause: error,
    });
  }
}

/**
 * Refuses an image with a file of an owner that the node doesn't know. An image of another base may bring the owner along, so
 * this is asked where the base stays.
 *
 * @throws PrepareRefused
 */
export async function refuseUnknownOwners({ root }: OnDisk, to: ManagedContent): Promise<void> {
  const desired = [...(await desiredTree({ root }, to.config, to.delivery)).values()];
  const unknown = desired.flatMap(({ unknownOwner }) => unknownOwner ?? []);
  if (unknown.length === 0) return;
  throw new PrepareRefused(`${to.config.name} can't be written to this node: ${unknown.join('; ')}`);
}

/**
 * @param name of a rendered config. @returns what an image of it brings; undefined where the cluster has the config no more.
 * @throws PrepareRefused when it can't be read, ApiError.
 */
export async function contentOfImage(
  { client, signal }: Pick<Preparation, 'client' | 'signal'>,
  name: string,
): Promise<ManagedContent | undefined> {
  const rendered = await client.find(MachineConfigs, name, { signal });
  return rendered && { delivery: 'Layered', config: nodeConfigOf(carriedConfig(rendered)) };
}
