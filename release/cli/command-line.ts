import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { by } from '../../api/order.ts';
import { type NodeProgram, withNodes } from '../node-programs.ts';
import type { Named } from '../provenance.ts';
import { compilesFor, executable } from './executable.ts';
import { cliProgram } from './program.ts';

/** The command line as one file for each platform, and what has to come with it. */
export interface CommandLine {
  readonly executables: readonly CliExecutable[];
  /** Text of `node_modules/.package-lock.json`, of the packages that are in it only. */
  readonly installed: string;
  /** Texts of these packages' licences. */
  readonly licenses: string;
}

export interface CliExecutable {
  /** By Go's name; the platform is Linux. */
  readonly architecture: string;
  readonly content: Buffer;
  /** Text of Node's licences. */
  readonly license: string;
  readonly from: Named;
  /** Whether its program is compiled beforehand. */
  readonly isCompiled: boolean;
}

/** package.json's place in a lock file of npm's. */
interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly license?: string }>>;
}

/**
 * Makes the command line for each architecture, with the live page in it.
 *
 * @param given.root of the checkout, with its packages installed.
 * @param given.page the directory of the built page.
 * @param given.node gives Node's program for an architecture.
 * @throws Error for what is missing.
 */
export async function commandLine(
  given: {
    readonly root: string;
    readonly page: string;
    readonly architectures: readonly string[];
    node(architecture: string): Promise<NodeProgram>;
  },
  signal: AbortSignal,
): Promise<CommandLine> {
  const { root, page } = given;
  const { code, packages } = await cliProgram();
  const names = await readdir(page, { recursive: true, withFileTypes: true });
  const assets = new Map<string, Buffer>();
  for (const file of names.filter((entry) => entry.isFile())) {
    const at = path.join(file.parentPath, file.name);
    assets.set(path.relative(page, at), await readFile(at));
  }
  const executables: CliExecutable[] = [];
  for (const architecture of given.architectures) {
    const node = await given.node(architecture);
    const { license, from } = node;
    const content = await executable({ architecture, program: code, assets, node }, signal);
    executables.push({ architecture, content, license, from, isCompiled: compilesFor(architecture) });
  }
  const lock = await readFile(path.join(root, 'package-lock.json'), 'utf8');
  return {
    executables,
    installed: withNodes(installedOf(lock, packages), lock, given.architectures),
    licenses: await licensesOf(root, lock, packages),
  };
}

/** @throws Error for a package that isn't in the lock file. */
function installedOf(lock: string, places: readonly string[]): string {
  const { packages } = JSON.parse(lock) as Lock;
  return JSON.stringify({
    packages: Object.fromEntries(places.map((place) => [place, entryOf(packages, place)])),
  });
}

function entryOf(packages: Lock['packages'], place: string): Lock['packages'][string] {
  const entry = packages[place];
  if (entry === undefined) throw new Error(`package-lock.json has no ${place}: run make install-cli`);
  return entry;
}

/** Licences ask to be passed on with the code that they are for. */
async function licensesOf(root: string, lock: string, places: readonly string[]): Promise<string> {
  const { packages } = JSON.parse(lock) as Lock;
  const texts: string[] = [];
  for (const place of places) {
    const { version, license = 'unknown' } = entryOf(packages, place);
    const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const files = (await readdir(path.join(root, place))).filter((file) =>
      /^(?:licen[cs]e|copying|notice)/i.test(file),
    );
    const contents = files
      .sort(by((file) => file))
      .map((file) => readFile(path.join(root, place, file), 'utf8'));
    texts.push([`${name} ${version} (${license})`, ...(await Promise.all(contents))].join('\n\n').trimEnd());
  }
  return `${texts.join(`\n\n${'-'.repeat(79)}\n\n`)}\n`;
}
