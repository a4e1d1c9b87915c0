import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { present } from '../../api/present.ts';
import { ostreeOnNode } from './booted-root.ts';
import { statusInputs } from './status-inputs.ts';

/** What the tool says on standard error before it ends with an exit code. */
export class Refusal extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A deployment as `ostree admin status` prints it: told without the code that is under test. */
export interface ListedDeployment {
  readonly osName: string;
  readonly checksum: string;
  readonly serial: number;
  readonly isBooted: boolean;
  readonly isStaged: boolean;
  /** By `ostree admin pin`. */
  readonly isPinned: boolean;
  /** How its origin names its image (`container-image-reference`); absent where none made it. */
  readonly reference?: string;
  /** What rpm-ostree notes in the origin: `[packages] requested`, `[overrides] remove`. */
  readonly packages: NotedPackages;
}

export interface NotedPackages {
  readonly installed: readonly string[];
  readonly removed: readonly string[];
}

/** What to stage. */
export interface StandInDeployment {
  readonly ref: string;
  readonly reference: string;
  readonly kernelArguments: readonly string[];
  readonly packages?: NotedPackages;
  /** Held back from the next boot. */
  readonly isLocked?: boolean;
}

/** What a tool may take for one command. */
const COMMAND_MS = 600_000;

const noPackages: NotedPackages = { installed: [], removed: [] };

/** What ostree last printed of each node as its status, and of what. */
const PRINTED = new Map<string, { readonly inputs: string; readonly status: string }>();

const LINE = /^(?<mark>[* ]) (?<os>\S+) (?<checksum>[0-9a-f]{64})\.(?<serial>\d+)(?: \((?<state>[a-z]+)\))?$/;

/**
 * Takes the place of an image tool on one directory node: refuses what the tool refuses, and acts on the real sysroot.
 * Imports little: it is started for each command.
 */
export class StandIn {
  readonly dir: string;
  readonly signal: AbortSignal;

  /** @param dir of the node. @param signal ends what it runs. */
  constructor(dir: string, signal = AbortSignal.timeout(COMMAND_MS)) {
    this.dir = dir;
    this.signal = signal;
  }

  /** @returns what ostree printed. @throws Refusal with what it wrote to standard error. */
  async ostree(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await ostreeOnNode(this.dir, args, this.signal);
    this.signal.throwIfAborted();
    if (exitCode !== 0) throw new Refusal(stderr);
    return stdout;
  }

  /**
   * Asks ostree only where something has changed since it was last asked: daemons ask their tool far more often than
   * they change anything, and starting ostree on a booted root was a third of what these tests cost.
   */
  async #status(): Promise<string> {
    const inputs = statusInputs(this.dir);
    const printed = PRINTED.get(this.dir);
    if (printed?.inputs === inputs) return printed.status;
    const status = await this.ostree('admin', 'status');
    // Of what changed meanwhile nobody knows whether ostree saw it.
    if (statusInputs(this.dir) === inputs) PRINTED.set(this.dir, { inputs, status });
    return status;
  }

  /** @returns the directory of a deployment. */
  directoryOf({
    osName,
    checksum,
    serial,
  }: Pick<ListedDeployment, 'osName' | 'checksum' | 'serial'>): string {
    return path.join(this.dir, 'root/sysroot/ostree/deploy', osName, 'deploy', `${checksum}.${serial}`);
  }

  /** @returns the deployments in boot order. */
  async deployments(): Promise<readonly ListedDeployment[]> {
    const listed: ListedDeployment[] = [];
    const lines = (await this.#status()).split('\n');
    for (const [index, line] of lines.entries()) {
      const found = LINE.exec(line)?.groups;
      if (found === undefined) continue;
      const next = lines.findIndex((each, at) => at > index && LINE.test(each));
      const about = lines.slice(index + 1, next < 0 ? undefined : next);
      const { mark, os: osName = '', checksum = '', serial, state } = found;
      const deployment = {
        osName,
        checksum,
        serial: Number(serial),
        isBooted: mark === '*',
        isStaged: state === 'staged',
        isPinned: about.includes('    Pinned: yes'),
      };
      const origin = await readFile(`${this.directoryOf(deployment)}.origin`, 'utf8');
      const reference = /^container-image-reference=(.*)$/m.exec(origin)?.[1];
      const packages = {
        installed: listIn(origin, 'requested'),
        removed: listIn(origin, 'remove'),
      };
      listed.push({ ...deployment, packages, ...present({ reference }) });
    }
    return listed;
  }

  /** Stages a commit with the origin that names its image. */
  async stage({
    ref,
    reference,
    kernelArguments,
    packages = noPackages,
    isLocked = false,
  }: StandInDeployment): Promise<void> {
    const booted = (await this.deployments()).find(({ isBooted }) => isBooted);
    if (booted === undefined) throw new Refusal('error: Not currently booted into an OSTree system\n');
    const origin = path.join(this.dir, 'root/run/stand-in-origin');
    await writeFile(origin, originOf(reference, packages));
    const appended = kernelArguments.map((argument) => `--karg-append=${argument}`);
    const options = ['--stage', `--os=${booted.osName}`, '--origin-file=/run/stand-in-origin', '--karg-none'];
    await this.ostree('admin', 'deploy', ...options, ...appended, ref);
    await rm(origin);
    // As rpm-ostree of an ostree before 2023.7, which Debian 12 has.
    const lock = path.join(this.dir, 'root/run/ostree/staged-deployment-locked');
    if (isLocked) await writeFile(lock, '');
  }
}

function originOf(reference: string, { installed, removed }: NotedPackages): string {
  const list = (names: readonly string[]) => names.map((name) => `${name};`).join('');
  return [
    '[origin]',
    `container-image-reference=${reference}`,
    ...(installed.length === 0 ? [] : ['[packages]', `requested=${list(installed)}`]),
    ...(removed.length === 0 ? [] : ['[overrides]', `remove=${list(removed)}`]),
    '',
  ].join('\n');
}

function listIn(origin: string, key: string): readonly string[] {
  const list = new RegExp(`^${key}=(.*)$`, 'm').exec(origin)?.[1] ?? '';
  return list.split(';').filter((name) => name !== '');
}

/** What a stand-in can do, by the name of the subcommand; each returns what it prints. */
export type StandInCommands = Readonly<
  Record<string, (tool: StandIn, args: readonly string[]) => Promise<string>>
>;

/** @returns what the subcommand prints. @throws Refusal, also when there is no such subcommand. */
export async function runCommand(
  commands: StandInCommands,
  tool: StandIn,
  name: string,
  args: readonly string[],
): Promise<string> {
  const command = commands[name];
  if (command === undefined) throw new Refusal(`error: unrecognized subcommand '${name}'\n`);
  return command(tool, args);
}

/** Runs a stand-in's command line for the node that STAND_IN_NODE names, and ends as the tool does. */
export async function runStandIn(commands: StandInCommands): Promise<void> {
  const [name = '', ...args] = process.argv.slice(2);
  const dir = process.env['STAND_IN_NODE'];
  if (dir === undefined) throw new Error('STAND_IN_NODE: expected the directory of a node');
  // As bootc does; a pod's engine sets it.
  if (process.env['container'] !== undefined) {
    process.stderr.write('error: Detected container; this command requires a booted host system.\n');
    process.exit(1);
  }
  // What a stand-in runs itself is real.
  process.env['PATH'] = process.env['STAND_IN_PATH'] ?? '';
  try {
    process.stdout.write(await runCommand(commands, new StandIn(dir), name, args));
  } catch (error) {
    process.stderr.write(error instanceof Refusal ? error.message : String(error));
    process.exitCode = error instanceof Refusal ? error.exitCode : 1;
  }
}
