import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import type { Source } from './build-facts.ts';

/** Of an annotation that becomes a label: longer ones are no URL or commit. */
const MAX_LENGTH = 512;
const PRINTABLE = /^[\x21-\x7e]+$/;

/**
 * Where a pool's MachineConfigs come from, by its annotations. One that is empty, too long or has other characters than
 * a URL or a revision can have counts as not there: provenance must not be what stops a build.
 */
export function sourceOf(pool: MachineConfigPool | undefined): Source {
  const url = usable(pool?.metadata.annotations?.[annotations.sourceUrl]);
  const revision = usable(pool?.metadata.annotations?.[annotations.sourceRevision]);
  return { ...(url === undefined ? {} : { url }), ...(revision === undefined ? {} : { revision }) };
}

function usable(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_LENGTH || !PRINTABLE.test(text)) return undefined;
  // Credentials in a URL would stand in every image's labels.
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, '$1');
}
