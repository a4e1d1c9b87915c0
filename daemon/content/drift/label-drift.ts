import { by } from '../../../api/order.ts';
import { HostTree } from '../../files/host-tree.ts';
import type { Host } from '../../host/host.ts';
import type { WrongLabels } from '../../host/selinux-labels.ts';
import { desiredTree, type ManagedContent } from '../entries/desired-tree.ts';
import { locateContent } from '../entries/locate-content.ts';
import { isOfImage } from '../managed-content.ts';
import type { Drift } from './drift.ts';
import { verifyContent } from './verify-content.ts';

/** The running host, as far as its content is compared. */
export interface ComparedHost {
  readonly host: Pick<Host, 'root'>;
  readonly wrongLabels: WrongLabels;
}

/** A label that differs. */
interface LabelDrift extends Drift {
  /** The path without links. */
  readonly name: string;
}

/**
 * Compares the running root with content, as verifyContent, and the SELinux labels of that content with the host's
 * policy.
 *
 * @returns where they differ, in the order of paths. @throws what verifyContent throws, OsCommandError.
 */
export async function verifyWithLabels(
  compared: ComparedHost,
  content: ManagedContent | undefined,
  signal: AbortSignal,
): Promise<readonly Drift[]> {
  const drifts = await verifyContent({ root: compared.host.root }, content, signal);
  if (content === undefined) return drifts;
  const differing = new Set(drifts.map((drift) => drift.path));
  const labels = (await labelDrifts(compared, content, signal)).filter((drift) => !differing.has(drift.path));
  return [...drifts, ...labels].sort(by((drift) => drift.path));
}

/**
 * @returns the paths of content whose labels differ, but for those below /usr: that is read-only, and its labels are
 *   the image's. @throws PasswordError, UnknownAccountError, OsCommandError, the file system's errors.
 */
export async function labelDrifts(
  { host: { root }, wrongLabels }: ComparedHost,
  content: ManagedContent,
  signal: AbortSignal,
): Promise<readonly LabelDrift[]> {
  const pathOf = new Map<string, string>();
  await using tree = new HostTree({ root });
  for (const { path, desired, location } of await locateContent(tree, await desiredTree({ root }, content))) {
    // What can't be reached, or has no directory, is drift of another kind.
    if (desired.entry === undefined || location === undefined || location.missingParents.length > 0) continue;
    if (!isOfImage(location.name)) pathOf.set(location.name, path);
  }
  const wrong = await wrongLabels([...pathOf.keys()], signal);
  return wrong.map(({ name, found, wanted }) => {
    const path = pathOf.get(name) ?? name;
    const has = found === undefined ? 'has no SELinux label' : `has SELinux label ${found}`;
    return { name, path, what: 'label', message: `${path}: ${has}, but should have ${wanted}` };
  });
}
