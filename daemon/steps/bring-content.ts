import type { NodePorts } from '../host/host.ts';
import { carriedBy } from '../standard/managed-content.ts';
import { recordStateContent } from '../standard/state-content.ts';
import { UndoError, writeContent } from '../standard/write-config.ts';
import { writeTarget } from './update-context.ts';

/**
 * Brings what the booted image's config has outside of /etc and /usr: for a machine that came with the image, and for a boot that
 * nobody granted, so that nothing was written before it. What /etc has otherwise is somebody's own. Harmless to repeat.
 *
 * @returns why it could not be brought; undefined where it was. @throws UndoError, the signal's reason.
 */
export async function bringContent(ports: NodePorts, signal: AbortSignal): Promise<string | undefined> {
  const { root } = ports.host;
  const content = await carriedBy(root);
  if (content === undefined) return undefined;
  try {
    const write = { from: undefined, to: content, force: true, isBooted: true, scope: 'state' } as const;
    await writeContent(writeTarget(ports), write, { signal });
    await recordStateContent(root, content);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UndoError) throw error;
    return error instanceof Error ? error.message : String(error);
  }
}
