import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * The rooms and their arrows (docs/architecture.md): which room may import from which. A file outside of every room
 * (test/, bench/, manifests/) may import whatever it exercises.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  api: [],
  machineconfig: ['api'],
  disruption: ['api', 'machineconfig'],
  image: [],
  cluster: ['api'],
  builder: ['api', 'machineconfig', 'disruption', 'image', 'cluster'],
  'opt-in': ['api', 'cluster'],
  rollout: ['api', 'machineconfig', 'disruption', 'cluster'],
  daemon: ['api', 'machineconfig', 'disruption', 'image', 'cluster'],
  page: ['api', 'disruption', 'cluster', 'rollout'],
  operator: [
    'api',
    'machineconfig',
    'disruption',
    'image',
    'cluster',
    'builder',
    'opt-in',
    'rollout',
    'page',
  ],
  cli: [
    'api',
    'machineconfig',
    'disruption',
    'image',
    'cluster',
    'builder',
    'opt-in',
    'rollout',
    'operator',
    'daemon',
    'page',
  ],
  workshop: [
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
  ],
};

/** Their folders. */
export const rooms: readonly string[] = Object.keys(arrows);

/** Pure rooms do no I/O and know no clock: what they may take from Node itself, because it computes and no more. */
const pureModules = ['node:crypto', 'node:path', 'node:util', 'node:zlib'];
const pureRooms: ReadonlySet<string> = new Set(['api', 'machineconfig', 'disruption']);

export interface Violation {
  readonly file: string;
  readonly imported: string;
  readonly why: string;
}

const IMPORT = /(?:\bfrom\s*|\bimport\s*\(\s*|\bimport\s+)['"]([^'"]+)['"]/g;

/**
 * Judges the imports of one file.
 *
 * @param file path relative to the project's root, with `/`.
 * @param source its text.
 * @returns every import that goes against an arrow or, in a pure room's own code, reaches for I/O.
 */
export function violations(file: string, source: string): Violation[] {
  const room = file.split('/')[0] ?? '';
  const allowed = arrows[room];
  if (allowed === undefined) return [];
  const found: Violation[] = [];
  for (const match of source.matchAll(IMPORT)) {
    const imported = match[1] ?? '';
    const why = imported.startsWith('.')
      ? againstArrow(room, allowed, path.posix.join(path.posix.dirname(file), imported))
      : impure(room, file, imported);
    if (why !== undefined) found.push({ file, imported, why });
  }
  return found;
}

function againstArrow(room: string, allowed: readonly string[], target: string): string | undefined {
  const targetRoom = target.split('/')[0] ?? '';
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
  // Unit tests may use another room's real parts (a real API server, a real registry) to exercise their own.
  const found = files
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => violations(file, readFileSync(path.join(root, file), 'utf8')));
  for (const { file, imported, why } of found) process.stderr.write(`${file}: imports ${imported}: ${why}\n`);
  process.stdout.write(`import directions: ${files.length} files, ${found.length} against the arrows\n`);
  if (found.length > 0) process.exitCode = 1;
}
