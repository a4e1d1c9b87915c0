import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import type { NodeProgram } from '../node-programs.ts';

/**
 * Node looks for its program in a note of this name, where the fuse is blown
 * (nodejs.org/api/single-executable-applications.html).
 */
const RESOURCE = 'NODE_SEA_BLOB';
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const POSTJECT = fileURLToPath(import.meta.resolve('postject/dist/cli.js'));
const RUN_MS = 10 * 60_000;
/** Node's names of architectures, by Go's. */
const ARCHITECTURES: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/** What becomes one file. */
export interface ExecutableParts {
  /** By Go's name; the platform is Linux. */
  readonly architecture: string;
  /** CommonJS, with every library. */
  readonly program: string;
  /** What the program finds in itself (`node:sea`), by name. */
  readonly assets: ReadonlyMap<string, Buffer>;
  /** Node's program for the platform, and its version. */
  readonly node: Pick<NodeProgram, 'program' | 'version'>;
}

/** @returns whether this machine's Node can compile a program for an executable of the architecture. */
export function compilesFor(architecture: string): boolean {
  return process.platform === 'linux' && process.arch === ARCHITECTURES[architecture];
}

/**
 * Makes a single executable application: Node's program for a platform with a program of ours in it. Nothing of that
 * platform is run. Where this machine is of the same architecture, the program is compiled beforehand, which halves the
 * CPU time of a start.
 *
 * @returns the executable; the same bytes for the same parts on machines of one architecture.
 * @throws Error when this process is another Node than that of the executable: it would make other bytes, or none that
 *   it reads.
 */
export async function executable(parts: ExecutableParts, signal: AbortSignal): Promise<Buffer> {
  const { version } = parts.node;
  if (process.versions.node !== version) {
    throw new Error(`this is Node ${process.versions.node}; expected ${version}, which executables have`);
  }
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-executable-'));
  try {
    const at = (name: string) => path.join(directory, name);
    const run = (args: readonly string[]) =>
      execa(process.execPath, args, {
        cwd: directory,
        cancelSignal: signal,
        timeout: RUN_MS,
        env: { NODE_OPTIONS: '' },
      });
    await mkdir(at('assets'));
    const names = [...parts.assets.keys()].sort();
    for (const [index, name] of names.entries()) {
      await writeFile(at(`assets/${index}`), parts.assets.get(name) ?? '');
    }
    await writeFile(at('shale.cjs'), parts.program);
    await writeFile(
      at('config.json'),
      JSON.stringify({
        // Without directories: both are in the blob.
        main: 'shale.cjs',
        output: 'blob',
        assets: Object.fromEntries(names.map((name, index) => [name, `assets/${index}`])),
        disableExperimentalSEAWarning: true,
        useCodeCache: compilesFor(parts.architecture),
        // As bin/shale.
        execArgv: ['--disable-warning=ExperimentalWarning', '--min-semi-space-size=16'],
        // NODE_OPTIONS of somebody's own programs is not meant for this one.
        execArgvExtension: 'none',
      }),
    );
    // With a fixed seed compiling gives the same bytes each time.
    await run(['--random-seed=1', '--experimental-sea-config', 'config.json']);
    await writeFile(at('shale'), parts.node.program);
    await chmod(at('shale'), 0o755);
    await run([POSTJECT, 'shale', RESOURCE, 'blob', '--sentinel-fuse', FUSE]);
    return await readFile(at('shale'));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
