import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import type { Source } from './build-facts.ts';

/** Of an annotation that becomes a label: longer ones are no URL or commit. */
const MAX_LENGTH = 512;
const PRINTABLE = /^[\x21-\x7e]+$/;

/** Where a pool's MachineConfigs come from, by its annotations. */
export function sourceOf(pool: MachineConfigPool | undefined): Source {
  const { [annotations.sourceUrl]: url, [annotations.sourceRevision]: revision } =
    pool?.metadata.annotations ?? {};
  return cleanSource({ url, revision });
}

/**
 * What of a source can stand in a label. A URL or revision that is empty, too long or has other characters than such a
 * thing has counts as not there: provenance must not be what stops a build.
 */
export function cleanSource(said: {
  readonly url: string | undefined;
  readonly revision: string | undefined;
}): Source {
  const [url, revision] = [usable(said.url), usable(said.revision)];
  return { ...(url === undefined ? {} : { url }), ...(revision === undefined ? {} : { revision }) };
}

function usable(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_LENGTH || !PRINTABLE.test(text)) return undefined;
  // Credentials in a URL would stand in every image's labels.
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, '$1');
}
