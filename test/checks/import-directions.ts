import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { importedSpecifiers } from './import-graph.ts';

/**
 * The rooms and their arrows (docs/architecture.md): which room may import from which. A file outside of every room
 * (test/, bench/, manifests/) may import whatever it exercises.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  oci: [],
  api: ['oci'],
  machineconfig: ['oci', 'api'],
  disruption: ['oci', 'api', 'machineconfig'],
  image: ['oci', 'api'],
  x509: [],
  cluster: ['api'],
  predict: ['api', 'machineconfig', 'disruption', 'image'],
  builder: ['oci', 'api', 'machineconfig', 'disruption', 'predict', 'image', 'cluster', 'x509'],
  'opt-in': ['api', 'cluster'],
  rollout: ['api', 'machineconfig', 'disruption', 'predict', 'cluster'],
  daemon: ['oci', 'api', 'machineconfig', 'disruption', 'image', 'cluster'],
  view: ['api', 'machineconfig', 'predict', 'cluster', 'rollout'],
  page: ['api', 'machineconfig', 'disruption', 'predict', 'cluster', 'rollout', 'view'],
  capi: ['api', 'machineconfig', 'disruption', 'predict', 'cluster', 'rollout'],
  operator: [
    'oci',
    'api',
    'machineconfig',
    'disruption',
    'predict',
    'image',
    'cluster',
    'builder',
    'opt-in',
    'rollout',
  ],
  cli: [
    'oci',
    'api',
    'machineconfig',
    'disruption',
    'predict',
    'image',
    'cluster',
    'builder',
    'opt-in',
    'rollout',
    'view',
    'page',
    'capi',
  ],
  'workshop/apiserver': ['x509'],
  'workshop/sandbox': [
    'oci',
    'api',
    'machineconfig',
    'disruption',
    'image',
    'cluster',
    'builder',
    'opt-in',
    'rollout',
    'daemon',
    'cli',
    'x509',
    'workshop/apiserver',
  ],
};

/**
 * Files that may import more than their room: the program starts every process, and the first boot of a node writes
 * what its daemon will.
 */
const more: Readonly<Record<string, readonly string[]>> = {
  'cli/program.ts': ['operator', 'daemon'],
  'cli/node/first-boot.ts': ['daemon'],
};

/** The folders of those that the product is made of. */
export const productRooms: readonly string[] = Object.keys(arrows).filter((room) => !isWorkshop(room));

function isWorkshop(room: string): boolean {
  return room.startsWith('workshop/');
}

/** Pure rooms do no I/O and know no clock: what they may take from Node itself, because it computes and no more. */
const pureModules = ['node:crypto', 'node:path', 'node:util', 'node:zlib'];
const pureRooms: ReadonlySet<string> = new Set([
  'oci',
  'api',
  'machineconfig',
  'disruption',
  'predict',
  'view',
]);

export interface Violation {
  readonly file: string;
  readonly imported: string;
  readonly why: string;
}

/**
 * Judges the imports of one file.
 *
 * @param file path relative to the project's root, with `/`.
 * @param source its text.
 * @returns every import that goes against an arrow or, in a pure room's own code, reaches for I/O.
 */
export function violations(file: string, source: string): Violation[] {
  const room = roomOf(file);
  const ofRoom = arrows[room];
  if (ofRoom === undefined) return [];
  const allowed = [...ofRoom, ...(more[file] ?? [])];
  const found: Violation[] = [];
  for (const imported of importedSpecifiers(source)) {
    const target = targetOf(file, imported);
    const why = target === undefined ? impure(room, file, imported) : againstArrow(room, allowed, target);
    if (why !== undefined) found.push({ file, imported, why });
  }
  return found;
}

/** @returns the room that a file is in: its first folder, or its workspace. */
function roomOf(file: string): string {
  const [first = '', second = ''] = file.split('/');
  return first === 'workshop' ? `${first}/${second}` : first;
}

/** @returns the file that an import names, where it is one of this repository. */
function targetOf(file: string, imported: string): string | undefined {
  if (imported.startsWith('.')) return path.posix.join(path.posix.dirname(file), imported);
  return imported.startsWith('@shale/') ? imported.replace('@shale', 'workshop') : undefined;
}

function againstArrow(room: string, allowed: readonly string[], target: string): string | undefined {
  const targetRoom = roomOf(target);
  if (targetRoom === room || allowed.includes(targetRoom)) return undefined;
  return `${room}/ may import ${allowed.length === 0 ? 'nothing of ours' : allowed.join(', ')}, not ${targetRoom}/`;
}

function impure(room: string, file: string, imported: string): string | undefined {
  if (!pureRooms.has(room) || !imported.startsWith('node:') || file.endsWith('.test.ts')) return undefined;
  return pureModules.includes(imported) ? undefined : `${room}/ is pure: it does no I/O`;
}

if (import.meta.main) {
  const root = path.join(import.meta.dirname, '../..');
  const files = globSync(`{${Object.keys(arrows).join(',')}}/**/*.{ts,tsx}`, { cwd: root });
  // Tests may use another room's real parts (a real API server, a real registry) to exercise their own; those of the
  // API server may not, because its workspace has to stand alone.
  const found = files
    .filter((file) => !file.endsWith('.test.ts') || file.startsWith('workshop/apiserver/'))
    .flatMap((file) => violations(file, readFileSync(path.join(root, file), 'utf8')));
  for (const { file, imported, why } of found) process.stderr.write(`${file}: imports ${imported}: ${why}\n`);
  process.stdout.write(`import directions: ${files.length} files, ${found.length} against the arrows\n`);
  if (found.length > 0) process.exitCode = 1;
}
