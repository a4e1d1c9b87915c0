import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing, isThere } from '../../files/tree-entry.ts';
import { type OstreeDeployment, readDeployment } from './deployments.ts';
import { GVariantError, readDictionary, readNumbers, readString, readStrings } from './gvariant.ts';

/** Where ostree notes what it will write to the bootloader at shutdown (libostree, _OSTREE_SYSROOT_RUNSTATE_STAGED). */
const STAGED_FILE = 'run/ostree/staged-deployment';
/** What ostree before 2023.7 says instead in a file of its own, and later ones do as well (…_STAGED_LOCKED). */
const LOCKED_FILE = 'run/ostree/staged-deployment-locked';

/** What is noted of a staged deployment. */
interface StagedNote {
  /** `<commit>.<serial>` */
  readonly id: string;
  readonly osName: string;
  readonly kernelArguments: readonly string[];
  /**
   * Kept on the disk, but not for the next boot (`ostree admin lock-finalization`, `bootc upgrade --download-only`).
   */
  readonly isLocked: boolean;
}

export type StagedDeployment = OstreeDeployment & Pick<StagedNote, 'isLocked'>;

/**
 * Reads the deployment that ostree has staged: it is on the disk, but no bootloader entry leads to it before shutdown.
 *
 * @param root the running root. @param sysroot the physical root.
 * @returns nothing when none is staged. @throws GVariantError when the note can't be read.
 */
export async function readStagedDeployment(
  root: string,
  sysroot: string,
): Promise<StagedDeployment | undefined> {
  const bytes = await readFile(path.join(root, STAGED_FILE)).catch(ignoreMissing);
  if (bytes === undefined) return undefined;
  const { id, osName, kernelArguments, isLocked } = parseStagedNote(bytes);
  const deployment = await readDeployment(sysroot, { id, osName, kernelArguments });
  return { ...deployment, isLocked: isLocked || (await isThere(path.join(root, LOCKED_FILE))) };
}

/**
 * What is staged now is for the next boot: an ostree before 2023.7 leaves the lock of what was staged before.
 *
 * @param root the running root.
 */
export async function endLock(root: string): Promise<void> {
  await rm(path.join(root, LOCKED_FILE), { force: true });
}

/**
 * Holds what is staged, or is about to be, back from the next boot: no ostree finalizes it while the file is there. It
 * lies in /run, so that no boot finds it.
 *
 * @param root the running root.
 */
export async function lockStaged(root: string): Promise<void> {
  const file = path.join(root, LOCKED_FILE);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, '', { mode: 0o640 });
}

/** @returns what a staged-deployment file says. @throws GVariantError */
export function parseStagedNote(bytes: Uint8Array): StagedNote {
  const note = readDictionary(bytes);
  const target = readDictionary(requireValue(note, 'target', 'a{sv}'));
  const id = readString(requireValue(target, 'name', 's'));
  if (!/^[0-9a-f]{64}\.\d+$/.test(id)) {
    throw new GVariantError(`${STAGED_FILE}: target: expected <commit>.<serial>, got ${JSON.stringify(id)}`);
  }
  return {
    id,
    osName: readString(requireValue(target, 'osname', 's')),
    kernelArguments: readStrings(requireValue(note, 'kargs', 'as')).filter(
      (argument) => !argument.startsWith('ostree='),
    ),
    isLocked: note.get('locked')?.bytes[0] === 1,
  };
}

function requireValue(dictionary: ReturnType<typeof readDictionary>, name: string, type: string): Uint8Array {
  const value = dictionary.get(name);
  if (value?.type !== type) {
    throw new GVariantError(`${STAGED_FILE}: ${name}: expected a ${type}, got ${value?.type ?? 'nothing'}`);
  }
  return value.bytes;
}

/** What ostree-prepare-root leaves for a host that it has booted (libotcore, OTCORE_RUN_BOOTED_KEY_…). */
const BOOTED_FILE = 'run/ostree-booted';
const BACKING_ROOT = 'backing-root-device-inode';

/** What is noted of the running root. */
export interface BootedNote {
  /**
   * What identifies the booted deployment's directory by stat(2), which with composefs is not the running root;
   * undefined where ostree is older than 2023.4 and doesn't say: then it is.
   */
  readonly deployment: { readonly dev: bigint; readonly ino: bigint } | undefined;
  /** A composefs that is signed can be made only by who has the key's other half. */
  readonly image: 'none' | 'composefs' | 'signed composefs';
  /**
   * Whether each file is verified by fs-verity; undefined where ostree is older than 2025.2, or the root is no
   * composefs, and it doesn't say.
   */
  readonly verity: boolean | undefined;
  /** Whether /etc lies in memory. */
  readonly isEtcTransient: boolean;
}

/** @param root the running root. @throws GVariantError when the note can't be read. */
export async function readBootedNote(root: string): Promise<BootedNote> {
  const bytes = await readFile(path.join(root, BOOTED_FILE)).catch(ignoreMissing);
  return parseBootedNote(bytes ?? new Uint8Array());
}

/** @param bytes of an ostree-booted file; empty where older versions say nothing. @throws GVariantError */
export function parseBootedNote(bytes: Uint8Array): BootedNote {
  const note = readDictionary(bytes);
  const isSet = (name: string) => note.get(name)?.bytes[0] === 1;
  const backing = note.get(BACKING_ROOT);
  const [dev, ino] = backing?.type === '(tt)' ? readNumbers(backing.bytes) : [];
  const composefs = note.has('composefs.signed') ? 'signed composefs' : 'composefs';
  return {
    deployment: dev === undefined || ino === undefined ? undefined : { dev, ino },
    image: isSet('composefs') ? composefs : 'none',
    verity: note.has('composefs.verity') ? isSet('composefs.verity') : undefined,
    isEtcTransient: note.has('transient-etc'),
  };
}
