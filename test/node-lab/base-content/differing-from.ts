import type { MachineConfig } from '../../../api/machine-config.ts';
import { parseNodeConfig } from '../../../machineconfig/parse-node-config.ts';
import { againstConfig, comparable } from '../../differential/judge.ts';
import { formatDifference, type Listing } from '../../differential/listing.ts';

/**
 * @param stock what there was before. @param found what there is.
 * @returns where it is not what standard mode makes of a config and that, as the judge of the differential test has it;
 *   '' for nowhere.
 */
export function differingFrom(rendered: MachineConfig, stock: Listing, found: Listing): string {
  const parsed = parseNodeConfig(rendered);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const all = againstConfig(comparable(found, stock), comparable(stock, stock), parsed.config);
  return all.map(formatDifference).join('\n');
}
