import { deadline } from '../fixtures/patience.ts';
import {
  missingImage,
  normalizeWalk,
  versionedImage,
  WALK_COMMAND_MS,
  type WalkedMachine,
  type WalkStep,
  walkOn,
} from './walk.ts';

const STATUS = ['rpm-ostree', 'status', '--json'] as const;
/** How a transaction goes on, how large it is, and what it deletes. */
const PROGRESS =
  /^(?:Pulling manifest|Importing|custom layers|\[\d+\/\d+\]|Staging deployment|Checking out tree|Enabled rpm-md|rpm-md repo|Resolving|Pruned images|Freed|Transaction complete|Bootloader updated)/;
const noExtra = { remove: [], add: [] };

/**
 * Leads a fresh machine through what Shale has rpm-ostree do, and what rpm-ostree refuses.
 *
 * @returns what it printed, without what is another in each run: the same for the tool and for its stand-in.
 */
export async function walkRpmOstree(machine: WalkedMachine): Promise<readonly WalkStep[]> {
  const walk = walkOn(machine);
  const rpmOstree = (step: string, ...args: readonly string[]) => walk.command(step, ['rpm-ostree', ...args]);
  const status = (step: string) => walk.status(step, STATUS);
  const rebase = (step: string, image: string, ...more: readonly string[]) =>
    rpmOstree(step, 'rebase', ...more, `ostree-unverified-registry:${image}`);
  const build = (version: string) => versionedImage(machine, version);
  const [one, two, three] = [await build('1'), await build('2'), await build('3')];
  const missing = missingImage(one);

  await status('as installed');
  await rpmOstree('rollback, with nothing to go back to', 'rollback');
  await rpmOstree('cancel, with no transaction', 'cancel');
  await rpmOstree('cleanup of nothing', 'cleanup');
  await rpmOstree('cleanup of what is pending, with nothing pending', 'cleanup', '--pending');
  await rebase('rebase to what is booted', machine.stock);
  await rebase('rebase to another image', one);
  await status('one image staged');
  await rebase('rebase to what is staged', one);
  await rpmOstree('rollback with an image staged', 'rollback');
  await rebase('rebase to another image than is staged', two);
  await status('another image staged');
  await rebase('rebase to an image that does not exist', missing);
  await status('still staged');
  await rpmOstree(
    'rebase under a policy that accepts anything',
    'rebase',
    `ostree-image-signed:docker://${one}`,
  );
  await status('staged after that');
  await rpmOstree('an option that does not exist', 'status', '--no-such-option');
  await rpmOstree('install of a package that no repository has', 'install', 'no-such-package');
  await rpmOstree('uninstall of what is not requested', 'uninstall', 'no-such-package');
  await rpmOstree('override of what the image does not have', 'override', 'remove', 'no-such-package');
  await rpmOstree('reset of what is not overridden', 'override', 'reset', 'no-such-package');
  await rpmOstree('cleanup of what is pending', 'cleanup', '--pending');
  await status('nothing is staged');
  await rebase('rebase held back', one, '--lock-finalization');
  await status('one image held back');
  await rebase('rebase held back, of what is held back', one, '--lock-finalization');
  await rebase('rebase of what is held back', one);
  await rebase('rebase held back to another image', two, '--lock-finalization');
  await status('another image held back');
  await machine.shutDownAndBoot();
  await status('booted without what was held back');
  // Of what was held back, ostree leaves a directory until it cleans up, which has the next serial number.
  await rebase('rebase to a third image, and boot it', three);
  await machine.shutDownAndBoot();
  await status('booted from what was staged');
  await rebase('rebase to what is booted, of two', three);
  await rpmOstree('rollback', 'rollback');
  await status('rollback queued');
  await rpmOstree('rollback of a rollback', 'rollback');
  await status('rollback queued no more');
  await rpmOstree('rollback once more', 'rollback');
  await rpmOstree('cleanup of a queued rollback', 'cleanup', '--pending');
  await status('after the cleanup of a queued rollback');
  await rpmOstree('cleanup of images', 'cleanup', '--base');
  await machine.backend.stage(one, { extraKernelArguments: noExtra, signal: deadline(WALK_COMMAND_MS) });
  await status('staged by Shale');
  await rebase('rebase to what Shale staged', one);
  await machine.backend.finalizeStaged(new Map(), deadline(WALK_COMMAND_MS));
  await status('finalized by Shale');
  await machine.losePowerAndBoot();
  await status('booted from what Shale finalized');
  return normalizeWalk(walk.steps, {
    repository: machine.stock.slice(0, machine.stock.indexOf('@')),
    progress: PROGRESS,
    plainStatus,
  });
}

/** The manifest and the config of each image are in it, and the time of each pull. */
function plainStatus(json: string): string {
  return JSON.stringify(JSON.parse(json), (key, value) => {
    if (key === 'timestamp') return 0;
    return key === 'base-commit-meta' ? Object.keys(value).sort() : value;
  }).replaceAll(/(?<="(?:osname":"|id":"))[a-z]+(?=[-"])/g, 'default');
}
