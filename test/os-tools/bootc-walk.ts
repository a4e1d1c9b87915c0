import type { DigestedPullspec } from '../../api/references.ts';
import { OsCommandError, type RunOsCommand } from '../../daemon/os/os-command.ts';
import type { ContractNode } from '../fixtures/backend-contract/bench.ts';
import { deadline } from '../fixtures/patience.ts';
import { layerFile } from '../fixtures/test-node.ts';

/** A machine of bootc's, or of its stand-in's. */
interface WalkedMachine extends ContractNode {
  readonly run: RunOsCommand;
}

/** What one command of the walk did. */
type WalkStep =
  | { readonly step: string; readonly status: unknown }
  | { readonly step: string; readonly stdout: readonly string[] }
  | { readonly step: string; readonly exitCode: number | undefined; readonly stderr: readonly string[] };

const COMMAND_MS = 600_000;
const STATUS = ['bootc', 'status', '--format=json', '--format-version=1'] as const;
const noExtra = { remove: [], add: [] };

/**
 * Leads a fresh machine through what Shale has bootc do, and what bootc refuses.
 *
 * @returns what it printed, without what is another in each run: the same for the tool and for its stand-in.
 */
export async function walkBootc(machine: WalkedMachine): Promise<readonly WalkStep[]> {
  const steps: WalkStep[] = [];
  const options = () => ({ timeoutMs: COMMAND_MS, signal: deadline(COMMAND_MS) });
  const lines = (text: string) => text.split('\n').filter((line) => line !== '');
  const bootc = async (step: string, ...args: readonly string[]) => {
    try {
      steps.push({ step, stdout: lines(await machine.run(['bootc', ...args], options())) });
    } catch (error) {
      if (!(error instanceof OsCommandError)) throw error;
      steps.push({ step, exitCode: error.exitCode, stderr: lines(error.stderr) });
    }
  };
  const status = async (step: string) => {
    steps.push({ step, status: JSON.parse(await machine.run([...STATUS], options())) });
  };
  const switchTo = (step: string, image: string, ...more: readonly string[]) =>
    bootc(step, 'switch', '--quiet', '--transport=registry', ...more, image);
  const build = (version: string) =>
    machine.addImage([layerFile('/etc/walk.conf', `${version}\n`)], {
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.created': '2026-11-23T20:00:00Z',
    });
  const [one, two] = [await build('1'), await build('2')];
  const missing = one.replace(/[0-9a-f]{64}$/, 'f'.repeat(64)) as DigestedPullspec;

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
  await machine.backend.stage(one, { extraKernelArguments: noExtra, signal: deadline(COMMAND_MS) });
  await status('staged by Shale');
  await machine.backend.finalizeStaged(new Map(), deadline(COMMAND_MS));
  await status('finalized by Shale');
  await machine.losePowerAndBoot();
  await status('booted from what Shale finalized');
  return normalize(steps, machine.stock.slice(0, machine.stock.indexOf('@')));
}

/**
 * Digests of images by the order in which they appear, commits by that within one status (bootc makes another commit each
 * time it pulls an image), and no numbers in what is for people.
 *
 * @param repository of the machine's images.
 */
function normalize(steps: readonly WalkStep[], repository: string): readonly WalkStep[] {
  const digests = numberedBy('123456789');
  const plain = (text: string) =>
    text.replaceAll(/[0-9a-f]{64}/g, digests).replaceAll(repository, 'quay.io/example/os');
  const forPeople = (line: string) =>
    /^(?:layers|Deploying|Pruned)/.test(line)
      ? line.replaceAll(/[\d.]+(?:\s?(?:bytes|[kMG]B))?/g, 'N')
      : plain(line);
  return steps.map((step) => {
    if ('status' in step) {
      const commits = numberedBy('abcdef');
      const status: unknown = JSON.parse(
        JSON.stringify(step.status)
          .replaceAll(/(?<="checksum":")[0-9a-f]{64}/g, (hex) => `${commits(hex)}!`)
          .replaceAll(/[0-9a-f]{64}(?!!)/g, digests)
          .replaceAll('!', '')
          .replaceAll(repository, 'quay.io/example/os')
          .replaceAll(/(?<="stateroot":")[^"]*/g, 'default'),
      );
      return { ...step, status };
    }
    if ('stdout' in step) return { ...step, stdout: step.stdout.map(forPeople) };
    return { ...step, stderr: step.stderr.map(forPeople) };
  });
}

/** @returns what gives each value one of the digits, 64 times. */
function numberedBy(digits: string): (hex: string) => string {
  const known = new Map<string, string>();
  return (hex) => {
    const digit = known.get(hex) ?? digits.charAt(known.size % digits.length);
    known.set(hex, digit);
    return digit.repeat(64);
  };
}
