import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { by } from '../../api/order.ts';
import { followInRoot, resolveInRoot } from '../files/resolve-in-root.ts';
import { ignoreMissing } from '../files/tree-entry.ts';
import type { CheckProgram } from './check-runner.ts';

/** A check that the node brings along. */
export interface HealthCheck {
  /** Path on the node. */
  readonly name: string;
  readonly program: CheckProgram;
}

export interface HealthChecks {
  /** In the order in which they run. A target that fails one of them is not kept. */
  readonly required: readonly HealthCheck[];
  /** What fails here is only reported. */
  readonly wanted: readonly HealthCheck[];
}

/** Every executable file counts. */
const OWN = '/etc/shale/health.d';
/** greenboot's, whose scripts end in `.sh` and are run by bash whatever their mode (greenboot, script_runner). */
const GREENBOOT = ['/usr/lib/greenboot/check', '/etc/greenboot/check'];
const GREENBOOT_CONFIG = '/etc/greenboot/greenboot.conf';

/**
 * Finds the checks of a node, its own and greenboot's, sorted by name.
 *
 * @param root the running root. @throws the file system's errors.
 */
export async function findHealthChecks(root: string): Promise<HealthChecks> {
  const disabled = await disabledInGreenboot(root);
  const greenboot = async (directory: string) => {
    const lists = await Promise.all(GREENBOOT.map((place) => scripts(root, `${place}/${directory}`)));
    return lists.flat().filter(({ name }) => !disabled.has(path.posix.basename(name)));
  };
  return {
    required: [...(await executables(root, OWN)), ...(await greenboot('required.d'))].sort(byName),
    wanted: (await greenboot('wanted.d')).sort(byName),
  };
}

/** By the file's name, as their authors number them; the directory decides between equals. */
const byName = by<HealthCheck>(
  ({ name }) => path.posix.basename(name),
  ({ name }) => name,
);

async function executables(root: string, directory: string): Promise<HealthCheck[]> {
  const executable = (await files(root, directory)).filter(({ mode }) => (mode & 0o111) !== 0);
  return executable.map(({ name, place }) => ({ name, program: { place } }));
}

async function scripts(root: string, directory: string): Promise<HealthCheck[]> {
  const scriptFiles = (await files(root, directory)).filter(({ name }) => name.endsWith('.sh'));
  return scriptFiles.map(({ name, place }) => ({ name, program: { place, interpreter: 'bash' } }));
}

async function files(root: string, directory: string) {
  const at = await resolveInRoot(root, `${directory}/x`);
  const names = at === undefined ? [] : ((await readdir(path.dirname(at)).catch(ignoreMissing)) ?? []);
  const regular: { readonly name: string; readonly place: string; readonly mode: number }[] = [];
  for (const child of names) {
    const name = `${directory}/${child}`;
    const place = await followInRoot(root, name);
    const stats = place === undefined ? undefined : await stat(place).catch(ignoreMissing);
    if (place !== undefined && stats?.isFile() === true) regular.push({ name, place, mode: stats.mode });
  }
  return regular;
}

/** `DISABLED_HEALTHCHECKS=("10_a.sh" "20_b.sh")`, a list of bash's. */
async function disabledInGreenboot(root: string): Promise<ReadonlySet<string>> {
  const place = await followInRoot(root, GREENBOOT_CONFIG);
  const text = place === undefined ? undefined : await readFile(place, 'utf8').catch(ignoreMissing);
  const list = /^[ \t]*DISABLED_HEALTHCHECKS=\(([^)]*)\)/m.exec(text ?? '')?.[1] ?? '';
  return new Set(list.split(/[\s"']+/).filter((name) => name !== ''));
}
