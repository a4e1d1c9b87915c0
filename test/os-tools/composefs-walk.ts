import { markStaged } from '../../daemon/os/bootc-composefs/finalization-lock.ts';
import { deadline } from '../fixtures/patience.ts';
import { layerFile } from '../fixtures/test-node.ts';
import { BOOTC_STATUS } from './bootc-walk.ts';
import {
  missingImage,
  numberedBy,
  WALK_COMMAND_MS,
  type WalkedMachine,
  type WalkStep,
  walkOn,
} from './walk.ts';

/**
 * Leads a fresh machine, whose bootc keeps deployments in composefs, through what Shale has bootc do, and what bootc
 * refuses.
 *
 * @returns what it printed, without what is another in each run: the same for the tool and for its stand-in.
 */
export async function walkComposefs(node: WalkedMachine): Promise<readonly WalkStep[]> {
  const walk = walkOn(node);
  const bootc = (step: string, ...args: readonly string[]) => walk.command(step, ['bootc', ...args]);
  const status = (step: string) => walk.status(step, BOOTC_STATUS);
  const switching = (image: string) => ['switch', '--quiet', '--transport=registry', image] as const;
  const switchTo = (step: string, image: string) => bootc(step, ...switching(image));
  const options = () => ({ timeoutMs: WALK_COMMAND_MS, signal: deadline(WALK_COMMAND_MS) });
  /** bootc leaves it to others to have the bootloader's entries written. */
  const losePower = async () => {
    await node.run(['sync'], options());
    await node.losePowerAndBoot();
  };
  const one = await node.addImage([layerFile('/etc/walk.conf', '1\n')]);
  const two = await node.addImage([layerFile('/usr/lib/bootc/kargs.d/50-walk.toml', 'kargs = ["walk=2"]\n')]);
  const missing = missingImage(one);

  await status('as installed');
  await bootc('rollback, with nothing to go back to', 'rollback');
  await switchTo('switch to another image', one);
  await status('one image staged');
  await switchTo('switch to what is staged', one);
  await switchTo('switch to a third image', two);
  await status('another image staged');
  await switchTo('switch to an image that does not exist', missing);
  await switchTo('switch to what is booted', node.stock);
  await node.run(['bootc', ...switching(one)], options());
  await markStaged(node.root, 'locked');
  await status('held back, by the note of what is staged');
  await markStaged(node.root, 'toFinalize');
  await bootc('finalize, as at shutdown', 'composefs-finalize-staged');
  await status('finalized');
  await bootc('finalize again', 'composefs-finalize-staged');
  await losePower();
  await status('booted from what was staged');
  await switchTo('switch to the image to go back to', node.stock);
  await bootc('rollback', 'rollback');
  await status('rollback queued');
  await bootc('rollback of a rollback', 'rollback');
  await status('rollback queued no more');
  await switchTo('switch before a rollback', two);
  await status('staged, with one to go back to');
  await bootc('rollback with an image staged', 'rollback');
  await status('what was staged is gone');
  await losePower();
  await status('booted from the rollback');
  await bootc('delete the one to go back to', 'delete-deployment', verityOf(walk.steps, 'rollback'));
  await status('nothing to go back to');
  await switchTo('switch to the image that was deleted', one);
  await status('it is staged again');
  await bootc('delete what is staged', 'delete-deployment', verityOf(walk.steps, 'staged'));
  await status('what was staged is deleted');
  await bootc('finalize what was deleted', 'composefs-finalize-staged');
  return normalize(walk.steps, node.stock);
}

/** @returns the digest of a deployment of the last status. */
function verityOf(steps: readonly WalkStep[], slot: string): string {
  const verity = new RegExp(`"${slot}":\\{.*?"verity":"([0-9a-f]+)"`).exec(JSON.stringify(steps.at(-1)))?.[1];
  return verity ?? '';
}

/** Images and deployments by the order in which they appear, as in the record. */
function normalize(steps: readonly WalkStep[], stock: string): readonly WalkStep[] {
  const repository = stock.slice(0, stock.indexOf('@'));
  const [images, verities] = [numberedBy('123456'), numberedBy('abcdef')];
  const text = JSON.stringify(steps)
    .replaceAll(/"bootDigest":"[0-9a-f]{64}"/g, `"bootDigest":"${'7'.repeat(64)}"`)
    .replaceAll(/(?<="verity":")[0-9a-f]{128}/g, verities)
    .replaceAll(/(?<=sha256:)[0-9a-f]{64}/g, (hex) => (/^f+$/.test(hex) ? hex : images(hex)))
    .replaceAll(repository, 'quay.io/example/os');
  return JSON.parse(text);
}
