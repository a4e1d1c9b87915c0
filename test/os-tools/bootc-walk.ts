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

export const BOOTC_STATUS = ['bootc', 'status', '--format=json', '--format-version=1'] as const;
const noExtra = { remove: [], add: [] };

/**
 * Leads a fresh machine through what Shale has bootc do, and what bootc refuses.
 *
 * @returns what it printed, without what is another in each run: the same for the tool and for its stand-in.
 */
export async function walkBootc(machine: WalkedMachine): Promise<readonly WalkStep[]> {
  const walk = walkOn(machine);
  const bootc = (step: string, ...args: readonly string[]) => walk.command(step, ['bootc', ...args]);
  const status = (step: string) => walk.status(step, BOOTC_STATUS);
  const switchTo = (step: string, image: string, ...more: readonly string[]) =>
    bootc(step, 'switch', '--quiet', '--transport=registry', ...more, image);
  const build = (version: string) => versionedImage(machine, version);
  const [one, two] = [await build('1'), await build('2')];
  const missing = missingImage(one);

  await status('as installed');
  await bootc('rollback, with nothing to go back to', 'rollback');
  await switchTo('switch to another image', one);
  await status('one image staged');
  await switchTo('switch to what is staged', one);
  await switchTo('switch to a third image', two);
  await status('another image staged');
  await switchTo('switch to an image that does not exist', missing);
  await switchTo('switch under a policy that accepts anything', one, '--enforce-container-sigpolicy');
  await bootc('an option that does not exist', 'status', '--no-such-option');
  await machine.shutDownAndBoot();
  await status('booted from what was staged');
  await switchTo('switch to what is booted', two);
  await bootc('rollback', 'rollback');
  await status('rollback queued');
  await bootc('rollback of a rollback', 'rollback');
  await status('rollback queued no more');
  await switchTo('switch before a rollback', one);
  await bootc('rollback with an image staged', 'rollback');
  await status('what was staged is gone');
  await bootc('rollback of a rollback, before Shale stages', 'rollback');
  await machine.backend.stage(one, { extraKernelArguments: noExtra, signal: deadline(WALK_COMMAND_MS) });
  await status('staged by Shale');
  await machine.backend.finalizeStaged(new Map(), deadline(WALK_COMMAND_MS));
  await status('finalized by Shale');
  await machine.losePowerAndBoot();
  await status('booted from what Shale finalized');
  return normalizeWalk(walk.steps, {
    repository: machine.stock.slice(0, machine.stock.indexOf('@')),
    forPeople: /^(?:layers|Deploying|Pruned)/,
    plainStatus: (json) => json.replaceAll(/(?<="stateroot":")[^"]*/g, 'default'),
  });
}
