import { byCodeUnits } from '../../api/order.ts';

/** Architectures in Go's words that operating-system images are made for (MCO builds for the same). */
const COMMON: ReadonlySet<string> = new Set(['amd64', 'arm64', 'ppc64le', 's390x']);
/** As the status of a MachineOSBuild limits a word and their number (api/machine-os-build.ts). */
const WORD = /^[a-z0-9_]{1,64}$/;
const MOST = 10;

/**
 * What a pool's image is built for. A kubelet's report is the word of one node: where others report a common architecture, one
 * that reports anything else doesn't decide what is built, and its own daemon reports that the image has none for it.
 *
 * @param reported by nodes, as GOARCH, in any order.
 * @returns each once, sorted; the less common ones only where no node reports a common one.
 */
export function architecturesToBuild(reported: Iterable<string>): string[] {
  const words = [...new Set(reported)].filter((word) => WORD.test(word)).sort(byCodeUnits);
  const common = words.filter((word) => COMMON.has(word));
  return (common.length > 0 ? common : words).slice(0, MOST);
}
