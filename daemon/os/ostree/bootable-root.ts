import type { DigestedPullspec } from '../../../api/references.ts';
import { PrepareRefused } from '../../records/current.ts';
import type { Ostree } from './ostree.ts';
import {
  composefsArgument,
  hostConfiguration,
  type RootConfiguration,
  rootConfigurations,
  YES,
} from './prepare-root.ts';
import { type BootedNote, readBootedNote } from './run-notes.ts';

/** A root that is to be booted, as far as ostree-prepare-root may refuse it. */
export interface RootToBoot {
  /** Of the image, and the host's own. */
  readonly configurations: readonly RootConfiguration[];
  /** The next boot's. */
  readonly kernelArguments: readonly string[];
  /** Whether it is of the commit that runs. */
  readonly isBooted: boolean;
  /** Whether the host's ostree makes a composefs of what it deploys. */
  readonly makesComposefs: boolean;
  readonly running: {
    readonly kernelArguments: readonly string[];
    readonly root: BootedNote['image'];
    /** Whether each of its files is verified by fs-verity. */
    readonly verity: boolean;
  };
}

const SIGNED = 'signed';
const UNSIGNED =
  'demands a signed composefs, and the commit that the node makes of an image has no signature, so it would not boot; expected composefs.enabled = yes';
const OFF: ReadonlySet<string> = new Set(['no', 'false', '0']);
/**
 * What ostree takes on the command line beside `signed` (libostree, _ostree_parse_tristate); `verity` is for files
 * alone.
 */
const TRISTATE: ReadonlySet<string> = new Set([...YES, ...OFF, 'maybe']);
/** An argument that takes a signature back leaves the demand for fs-verity (libotcore, otcore_load_rootfs_config). */
const VERIFIED: ReadonlySet<string> = new Set([SIGNED, 'verity']);
const UNMADE =
  'which the host’s ostree does not make (its --version lists no such feature), so it would not boot; expected composefs.enabled = maybe';

/**
 * Finds out why a machine would end in its initramfs, or lose its /etc, with the root of an image. What decides it is
 * in the initramfs, which is not looked at: so that every configuration counts that the image or the host has, and what
 * the running root was made by.
 *
 * @returns what demands it and what is expected; nothing where the root can be booted.
 */
export function rootObstacle(root: RootToBoot): string | undefined {
  const argument = composefsArgument(root.kernelArguments);
  const isSameArgument = argument === composefsArgument(root.running.kernelArguments);
  // It has booted like this.
  if (root.isBooted && isSameArgument) return undefined;
  if (argument !== undefined && argument !== SIGNED && !isSameArgument && !TRISTATE.has(argument))
    return `${named(argument)} has a value that ostree-prepare-root does not take there, so it would not boot; expected yes, no or maybe`;
  return (
    signatureObstacle(root, argument) ??
    verityObstacle(root, argument) ??
    (root.makesComposefs ? undefined : missingComposefs(root, argument)) ??
    transientObstacle(root, argument)
  );
}

function named(argument: string): string {
  return `the kernel argument ostree.prepare-root.composefs=${argument}`;
}

function signatureObstacle({ configurations, running }: RootToBoot, argument?: string): string | undefined {
  if (argument === SIGNED) return `${named(argument)} ${UNSIGNED}`;
  if (argument !== undefined) return undefined;
  const signed = configurations.find(({ composefs }) => composefs === SIGNED);
  if (signed !== undefined) return `${signed.file} ${UNSIGNED}`;
  if (running.root !== 'signed composefs') return undefined;
  return `the running root is a signed composefs (/run/ostree-booted), so its initramfs ${UNSIGNED} on the host that runs`;
}

function verityObstacle({ configurations, running }: RootToBoot, argument = ''): string | undefined {
  const verified = configurations.find(({ composefs }) => VERIFIED.has(composefs));
  if (verified === undefined || OFF.has(argument) || running.verity) return undefined;
  return `${verified.file} demands fs-verity (composefs.enabled = ${verified.composefs}), which the running root does not have (/run/ostree-booted), so that its files might not be readable; expected composefs.enabled = yes`;
}

function missingComposefs({ configurations }: RootToBoot, argument?: string): string | undefined {
  if (argument !== undefined)
    return YES.has(argument) ? `${named(argument)} demands a composefs, ${UNMADE}` : undefined;
  const demanding = configurations.find(({ composefs }) => YES.has(composefs));
  if (demanding === undefined) return undefined;
  return `${demanding.file} demands a composefs (composefs.enabled = ${demanding.composefs}), ${UNMADE}`;
}

function transientObstacle(
  { configurations, makesComposefs }: RootToBoot,
  argument?: string,
): string | undefined {
  const transientEtc = configurations.find(({ isEtcTransient }) => isEtcTransient);
  if (transientEtc !== undefined)
    return `${transientEtc.file} makes /etc transient (etc.transient), so that no boot would keep what is written there; expected a persistent /etc`;
  const transientRoot = configurations.find(
    ({ isRootTransient, composefs }) =>
      isRootTransient && (!makesComposefs || OFF.has(argument ?? composefs)),
  );
  if (transientRoot === undefined) return undefined;
  const expected = makesComposefs ? 'composefs.enabled = yes' : 'a persistent /';
  return `${transientRoot.file} makes / transient (root.transient) without a composefs, which ostree-prepare-root refuses, so it would not boot; expected ${expected}`;
}

interface ImageToBoot {
  readonly image: DigestedPullspec;
  /** Those that the image has. */
  readonly configurations: readonly RootConfiguration[];
  readonly kernelArguments: readonly string[];
  readonly isBooted: boolean;
}

interface HostToBoot {
  readonly ostree: Ostree;
  /** The running root, as the daemon sees it. */
  readonly root: string;
  readonly booted: { readonly directory: string; readonly kernelArguments: readonly string[] };
}

/**
 * @throws PrepareRefused where rootObstacle finds one; GVariantError when what ostree noted at boot can't be read;
 *   OsCommandError.
 */
export async function requireBootableRoot(
  { ostree, root, booted }: HostToBoot,
  { image: name, configurations, ...next }: ImageToBoot,
  signal: AbortSignal,
): Promise<void> {
  const own = await hostConfiguration(root, booted.directory);
  const { image, verity } = await readBootedNote(root);
  const why = rootObstacle({
    ...next,
    configurations: own === undefined ? configurations : [...configurations, own],
    makesComposefs: image !== 'none' || (await ostree.makesComposefs(signal)),
    running: {
      kernelArguments: booted.kernelArguments,
      root: image,
      verity: image !== 'none' && (verity ?? (await demandsVerity(booted.directory))),
    },
  });
  if (why !== undefined) throw new PrepareRefused(`${name}: ${why}`);
}

async function demandsVerity(directory: string): Promise<boolean> {
  return (await rootConfigurations(directory)).some(({ composefs }) => VERIFIED.has(composefs));
}
