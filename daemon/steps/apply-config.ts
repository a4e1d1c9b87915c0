import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import type { NodePorts } from '../host/host.ts';
import type { Current } from '../records/current.ts';
import { nodeConfigOf, writtenConfigOf } from '../records/rendered-config.ts';
import { endForce, isForced } from '../standard/drift.ts';
import { verifyConfig } from '../standard/verify-config.ts';
import { writeConfig } from '../standard/write-config.ts';
import type { WriteTarget } from '../standard/write-target.ts';
import type { UpdateWork } from './update-context.ts';

/** How one mode brings content to the running root. */
export interface LiveWay {
  apply(): Promise<void>;
  /** @returns the paths that are not as wanted. */
  differing(): Promise<readonly string[]>;
}

/** The content is the rendered config's, written to the running root; a write that fails leaves all as it was. */
export function applyConfig(work: UpdateWork, next: Extract<Current, { mode: 'Standard' }>): LiveWay {
  const { ports, current, again, signal } = work;
  const { root } = ports.host;
  const target = writeTarget(ports);
  const to = nodeConfigOf(next.rendered);
  return {
    apply: async () => {
      const force = again || (await isForced(root));
      await writeConfig(target, { from: writtenConfigOf(current), to, force }, { signal });
      await work.afterWriting();
      await endForce(root);
    },
    differing: async () => (await verifyConfig(root, to)).map((drift) => drift.path),
  };
}

/** @returns where standard mode writes: the running root. */
export function writeTarget({ host: { root }, setPasswords, relabel }: NodePorts): WriteTarget {
  return { root, stateDir: path.join(root, nodePaths.state), setPasswords, relabel };
}
