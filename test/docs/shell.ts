import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { EXAMPLE_REGISTRIES, RUNNING_REGISTRY, registryIn } from './example-registry.ts';
import { ROOT } from './pages.ts';

export interface Outcome {
  /** Standard output and error, as a terminal shows them. */
  readonly output: string;
  readonly exitCode: number;
}

/** A shell in which the commands of one page run one after another, as a reader types them. */
export interface Shell {
  /** @throws Error with what was printed so far when it takes longer than the limit, in ms. */
  run(command: string, limitMs: number): Promise<Outcome>;
  /** For shells that share its network and its sandbox. They have to end before it does. */
  readonly surroundings: Surroundings;
  /** Ends it, and whatever it started in its process group. */
  close(): void;
}

/** The hosts of the examples are in a network of the page's own, where root can make one. */
const OWN_NETWORK = process.getuid?.() === 0 ? ['unshare', '--mount', '--net', '--'] : [];
/** Where a page's commands run, if not in a network and with a sandbox of its own. */
export interface Surroundings {
  /** What starts a command in that network. */
  readonly enter: readonly string[];
  /** The directory of the sandbox. */
  readonly sandbox: string;
  /** The directory of the registry of the examples, which runs already. */
  readonly registry: string;
}

/** What belongs to a checkout alone. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['.git', '.shale', '.ci']);

/**
 * @param dir an empty directory of the page's own: there is what a checkout has, and a sandbox has its place there.
 * @param shared what it shares with other shells.
 */
export function openShell(dir: string, shared?: Surroundings): Shell {
  const home = path.join(dir, 'shale');
  mkdirSync(home);
  for (const name of readdirSync(ROOT)) {
    if (!NOT_SHOWN.has(name)) symlinkSync(path.join(ROOT, name), path.join(home, name));
  }
  const [command, ...before] = [...(shared?.enter ?? OWN_NETWORK), 'bash'];
  const child = spawn(command ?? 'bash', [...before, '--noprofile', '--norc'], {
    cwd: home,
    detached: true,
    env: {
      ...process.env,
      PATH: `${path.join(ROOT, 'bin')}:${process.env['PATH'] ?? ''}`,
      HOME: dir,
      KUBECONFIG: path.join(dir, 'no-kubeconfig'),
      SHALE_SANDBOX_DIR: shared?.sandbox ?? sandboxOf(dir),
      ...(shared === undefined ? {} : { [RUNNING_REGISTRY]: shared.registry }),
      LC_ALL: 'C.UTF-8',
      TERM: 'dumb',
    },
  });
  child.stdout.setEncoding('utf8');
  // To enter a network's mounts is to leave the directory.
  child.stdin.write(`exec 2>&1; cd ${home}\n`);
  if (shared === undefined && OWN_NETWORK.length > 0) {
    const hosts = path.join(dir, 'hosts');
    writeFileSync(hosts, ['localhost', ...EXAMPLE_REGISTRIES].map((name) => `127.0.0.1 ${name}\n`).join(''));
    child.stdin.write(`ip link set lo up; mount --bind ${hosts} /etc/hosts\n`);
  }
  let last = 0;
  return {
    async run(command, limitMs) {
      const outcome = await runIn(child, command, last, limitMs);
      last = outcome.exitCode;
      return outcome;
    },
    surroundings: {
      enter: OWN_NETWORK.length > 0 ? ['nsenter', '--mount', '--net', `--target=${child.pid}`, '--'] : [],
      sandbox: sandboxOf(dir),
      registry: registryIn(home),
    },
    close: () => killGroup(child),
  };
}

/** @returns where a page's sandbox has its things. @param dir of the page. */
function sandboxOf(dir: string): string {
  return path.join(dir, 'sandbox');
}

/** @param last exit code of the command before, which the shell has to know for `$?`. */
async function runIn(child: ChildProcess, command: string, last: number, limitMs: number): Promise<Outcome> {
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error('the shell has no pipes');
  const mark = `=${randomUUID()}=`;
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  let text = '';
  const onData = (chunk: string) => {
    text += chunk;
    const end = new RegExp(`${mark}(\\d+)\\n`).exec(text);
    if (end !== null) resolve({ output: text.slice(0, end.index), exitCode: Number(end[1]) });
  };
  const onExit = () => reject(new Error(`${command}: the shell ended; it printed:\n${text}`));
  const onTime = () =>
    reject(new Error(`${command}: takes longer than ${limitMs / 1000} s; it printed:\n${text}`));
  const timer = setTimeout(onTime, limitMs);
  stdout.on('data', onData);
  child.once('exit', onExit);
  try {
    // Nothing may read the rest of the script as its input.
    stdin.write(`(exit ${last})\n{ ${command}\n} </dev/null\necho ${mark}$?\n`);
    return await promise;
  } finally {
    clearTimeout(timer);
    stdout.off('data', onData);
    child.off('exit', onExit);
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
