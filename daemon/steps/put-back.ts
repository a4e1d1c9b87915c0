import type { ManagedContent } from '../content/entries/desired-tree.ts';
import { restoreContent } from '../content/write/restore-content.ts';
import { writeTarget } from './disk-work.ts';
import { normal, type StepContext } from './step-context.ts';

/** systemd has to read units again when one of them is restored. */
const UNITS = '/etc/systemd/system/';

/**
 * Puts back what somebody has changed of the content that Shale manages. Nothing is reloaded but systemd's own units,
 * and nothing reboots: what a service has read since, its admin knows (MCO reboots the node).
 *
 * @param because who permits it, as a clause for the event.
 * @throws what restoreContent throws, and systemd's refusal.
 */
export async function putBack(context: StepContext, content: ManagedContent, because: string): Promise<void> {
  const { ports, signal } = context;
  const { config } = content;
  const { written, removed } = await restoreContent(writeTarget(ports), content, signal);
  const paths = [...written, ...removed];
  if (paths.some((name) => name.startsWith(UNITS))) await ports.services.daemonReload(signal);
  normal(
    context,
    'ConfigPutBack',
    paths.length === 0
      ? `${because}, and nothing differs from ${config.name}`
      : `Restored from ${config.name}, because ${because}: ${paths.join(', ')}. Services that read these files were not restarted`,
  );
}
