import type { DigestedPullspec } from '../../api/references.ts';
import { OsCommandError, type RunOsCommand } from '../../daemon/os/os-command.ts';
import type { ContractNode } from '../fixtures/backend-contract/bench.ts';
import { deadline } from '../fixtures/patience.ts';
import { layerFile } from '../fixtures/test-node.ts';

/** A machine of an image tool's, or of its stand-in's. */
export interface WalkedMachine extends ContractNode {
  readonly run: RunOsCommand;
}

/** What one command of a walk did. */
export type WalkStep =
  | { readonly step: string; readonly status: unknown }
  | { readonly step: string; readonly stdout: readonly string[] }
  | { readonly step: string; readonly exitCode: number | undefined; readonly stderr: readonly string[] };

type OsCommand = readonly [string, ...string[]];

/** Records what an image tool prints. */
export interface Walk {
  readonly steps: readonly WalkStep[];
  /** Runs a command, and records what it printed or why it failed. */
  command(step: string, command: OsCommand): Promise<void>;
  /** Runs a command that prints JSON, and records that. */
  status(step: string, command: OsCommand): Promise<void>;
}

export const WALK_COMMAND_MS = 600_000;

/** @param machine that it is for. @returns an image of a version of its own. */
export function versionedImage(machine: WalkedMachine, version: string): Promise<DigestedPullspec> {
  return machine.addImage([layerFile('/etc/walk.conf', `${version}\n`)], {
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.created': '2026-11-23T20:00:00Z',
  });
}

/** @returns the name of an image that the registry of this one doesn't have. */
export function missingImage(image: DigestedPullspec): DigestedPullspec {
  return image.replace(/[0-9a-f]{64}$/, 'f'.repeat(64)) as DigestedPullspec;
}

/** @returns what records the commands of one machine. */
export function walkOn(machine: WalkedMachine): Walk {
  const steps: WalkStep[] = [];
  const options = () => ({ timeoutMs: WALK_COMMAND_MS, signal: deadline(WALK_COMMAND_MS) });
  return {
    steps,
    command: async (step, command) => {
      try {
        steps.push({ step, stdout: lines(await machine.run([...command], options())) });
      } catch (error) {
        if (!(error instanceof OsCommandError)) throw error;
        steps.push({ step, exitCode: error.exitCode, stderr: lines(error.stderr) });
      }
    },
    status: async (step, command) => {
      steps.push({ step, status: JSON.parse(await machine.run([...command], options())) });
    },
  };
}

const lines = (text: string) => text.split('\n').filter((line) => line !== '');

/**
 * Digests of images by the order in which they appear, commits by that within one status (a tool makes another commit
 * each time it pulls an image), and no numbers in what is for people.
 *
 * @param repository of the machine's images. @param forPeople lines that tell how long, how large or how many.
 * @param progress lines that are left out. @param plainStatus takes out of a status what else is another in each run.
 */
export function normalizeWalk(
  steps: readonly WalkStep[],
  {
    repository,
    forPeople,
    progress,
    plainStatus = (json) => json,
  }: {
    readonly repository: string;
    readonly forPeople?: RegExp;
    readonly progress?: RegExp;
    readonly plainStatus?: (json: string) => string;
  },
): readonly WalkStep[] {
  const digests = numberedBy('123456789');
  const plain = (text: string) => {
    const commits = numberedBy('abcdef');
    return text
      .replaceAll(/(?<!sha256[:-])\b[0-9a-f]{64}\b/g, (hex) => commits(hex))
      .replaceAll(/(?<=sha256[:-])[0-9a-f]{64}/g, (hex) => digests(hex))
      .replaceAll(repository, 'quay.io/example/os');
  };
  const line = (text: string) =>
    forPeople?.test(text) === true ? text.replaceAll(/[\d.]+(?:\s?(?:bytes|[kMG]B))?/g, 'N') : plain(text);
  return steps.map((step) => {
    if ('status' in step) {
      const status: unknown = JSON.parse(plain(plainStatus(JSON.stringify(step.status))));
      return { ...step, status };
    }
    if ('stdout' in step)
      return { ...step, stdout: step.stdout.filter((each) => progress?.test(each) !== true).map(line) };
    return { ...step, stderr: step.stderr.map(line) };
  });
}

/** @returns what gives each value one of the digits, as often as the value is long. */
export function numberedBy(digits: string): (hex: string) => string {
  const known = new Map<string, string>();
  return (hex) => {
    const digit = known.get(hex) ?? digits.charAt(known.size % digits.length);
    known.set(hex, digit);
    return digit.repeat(hex.length);
  };
}
