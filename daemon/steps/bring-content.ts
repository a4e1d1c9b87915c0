import { present } from '../../api/present.ts';
import type { NodePorts } from '../host/host.ts';
import { carriedBy } from '../standard/managed-content.ts';
import { recordStateContent } from '../standard/state-content.ts';
import { type ContentWrite, UndoError, writeContent } from '../standard/write-config.ts';
import { writeTarget } from './update-context.ts';

/**
 * Brings what the booted image's config has outside of /usr: for a machine that came with the image, and for a boot that nobody
 * granted, so that nothing was written before it. Harmless to repeat.
 *
 * @param scope see ContentWrite.
 *
 * @returns why it could not be brought; undefined where it was. @throws UndoError, the signal's reason.
 */
export async function bringContent(
  ports: NodePorts,
  scope: ContentWrite['scope'],
  signal: AbortSignal,
): Promise<string | undefined> {
  const { root } = ports.host;
  const content = await carriedBy(root);
  if (content === undefined) return undefined;
  try {
    const write = { from: undefined, to: content, force: true, isBooted: true, ...present({ scope }) };
    await writeContent(writeTarget(ports), write, { signal });
    await recordStateContent(root, content);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UndoError) throw error;
    return error instanceof Error ? error.message : String(error);
  }
}
